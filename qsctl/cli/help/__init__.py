"""Commands about qsctl itself and the machine it runs on."""
