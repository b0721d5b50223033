"""``python -m timesliver`` is the command ``timesliver``."""

from timesliver.cli import main

if __name__ == "__main__":
    main()
