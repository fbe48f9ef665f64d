"""Call the native core on plans and arrays. Only this folder and `config` use `_core`; `__init__` imports it first."""
