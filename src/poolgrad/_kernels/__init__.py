"""The native core as functions of plans and arrays; the only user of `_core` besides `config`."""
