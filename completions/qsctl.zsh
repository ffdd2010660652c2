#compdef qsctl

_qsctl_completion() {
  eval $(env _TYPER_COMPLETE_ARGS="${words[1,$CURRENT]}" _QSCTL_COMPLETE=complete_zsh qsctl)
}

compdef _qsctl_completion qsctl

