package linux

import (
	"context"
	"github.com/tholehq/thole/common/platform"
)

func (p *Platform) probe(ctx context.Context) (platform.Report, error) { return platform.Report{}, nil }
