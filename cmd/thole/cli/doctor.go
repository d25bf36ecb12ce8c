package cli

func doctorMain(args []string) int    { return 0 }
func probeActsMain(args []string) int { return 0 }
