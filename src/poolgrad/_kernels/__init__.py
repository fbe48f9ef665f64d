"""Call the native core on plans and arrays; only this folder and `config` use `_core`."""
