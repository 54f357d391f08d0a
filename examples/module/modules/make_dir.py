from pairun.module import Context, StateModule, Verdict, arg, define, no_change, will_change


@define
class MakeDir(StateModule):
    """Make sure that a directory exists."""

    example = "make_dir: {path: /usr/local/pai/run/x}"

    path: str = arg("The directory.")

    def probe(self, ctx: Context) -> bool:
        return ctx.stat(self.path) is not None

    def plan(self, state: bool) -> Verdict:
        return no_change("it exists") if state else will_change("make it")

    def apply(self, ctx: Context) -> None:
        ctx.make_dir(self.path)
