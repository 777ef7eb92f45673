"""What must hold for every plan, batch, migration, host and crash: histories and checks."""
