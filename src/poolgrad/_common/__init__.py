"""Helpers for arrays, errors, integers and pictures. Every other folder may import them; they import no other folder."""
