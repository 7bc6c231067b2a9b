"""`python -m proxy` is the command `goalkeeper`."""

from proxy.cli.main import main

raise SystemExit(main())
