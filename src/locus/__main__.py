"""The command `locus`, also as `python -m locus`: from its first moment on, Ctrl-C ends it without a traceback."""

import signal


def main() -> int:
    """Run the command. While its code is read there is nothing to tidy up yet, so Ctrl-C may simply end it."""
    heard = signal.getsignal(signal.SIGINT)  # ignored, if it was started with nohup
    if heard is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from locus import cli

    signal.signal(signal.SIGINT, heard)
    return cli.main()


if __name__ == "__main__":
    raise SystemExit(main())
