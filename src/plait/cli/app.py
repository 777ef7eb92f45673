"""The commands and their groups; what each does is in the module of its group."""

from __future__ import annotations

from plait.cli import asking, delta, env, query
from plait.cli.entry import new_app, new_group

app = new_app("plait", "Exact, fast multi-way windowed joins of streams.")
app.command()(asking.run)
app.command()(asking.explain)
app.command(short_help="Choose a plan for statistics and budgets.")(asking.plan)
app.command(short_help="See a live join change its plan and move its load.")(asking.demo)
app.command()(asking.generate)

_query = new_group(app, "query", "Operate a query on Spark.")
_query.command(short_help="Show it in the browser, live.")(query.console)
_query.command(short_help="Write the pages of the console into one HTML file.")(query.report)
_query.command(short_help="Let it go on although its question has changed.")(query.upgrade)
_query.command(short_help="Let it go on with more or fewer processors.")(query.rebalance)
_query.command(short_help="Tell what another policy would have decided.")(query.replay)

_env = new_group(app, "env", "Prepare and check this machine.")
_env.command(short_help="Print the folder of the Java that Spark runs on.")(env.java)
_env.command(short_help="Check all that queries depend on here.")(env.doctor)
_env.command(short_help="Measure what operations cost on this machine.")(env.calibrate)
_env.command(short_help="Compile the kernels.")(env.warm)

_delta = new_group(app, "delta", "Look after Delta tables.")
_delta.command(short_help="Remove what failed batches have left.")(delta.vacuum)
