"""Every plan of a small query, and every plan over sites: what others are measured against."""
