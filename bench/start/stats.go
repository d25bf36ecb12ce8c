// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"math/rand/v2"
	"slices"
)

// An interval is an estimate with its 95 % confidence bounds.
type interval struct{ lo, mid, hi float64 }

// median estimates the median of x. The bounds are order statistics: the
// number of values below the true median is binomial(n, 1/2), here by its
// normal approximation, so nothing is assumed of the distribution of x.
func median(x []float64) interval {
	if len(x) == 0 {
		return interval{math.NaN(), math.NaN(), math.NaN()}
	}
	s := slices.Sorted(slices.Values(x))
	n := len(s)
	half := 1.96 * math.Sqrt(float64(n)) / 2
	lo := int(math.Floor(float64(n)/2-half)) - 1
	hi := int(math.Ceil(float64(n)/2 + half)) // ranks from 0
	return interval{s[max(lo, 0)], middle(s), s[min(hi, n-1)]}
}

// middle is the median of sorted values.
func middle(s []float64) float64 {
	n := len(s)
	if n%2 == 1 {
		return s[n/2]
	}
	return (s[n/2-1] + s[n/2]) / 2
}

// resamples is enough for bounds that are stable to the second digit.
const resamples = 2000

// ratio estimates median(x)/median(y). Both were measured in the same rounds,
// so the bootstrap draws rounds: what the two share in a round stays shared.
// The seed is fixed: the same numbers give the same bounds.
func ratio(x, y []float64) interval {
	n := min(len(x), len(y))
	if n == 0 {
		return interval{math.NaN(), math.NaN(), math.NaN()}
	}
	rng := rand.New(rand.NewPCG(1, 1))
	a, b, r := make([]float64, n), make([]float64, n), make([]float64, resamples)
	for i := range r {
		for j := range n {
			k := rng.IntN(n)
			a[j], b[j] = x[k], y[k]
		}
		slices.Sort(a)
		slices.Sort(b)
		r[i] = middle(a) / middle(b)
	}
	slices.Sort(r)
	mid := median(x[:n]).mid / median(y[:n]).mid
	return interval{r[resamples*25/1000], mid, r[resamples*975/1000]}
}
