// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

// Command flatten turns a compiled object into the image that package flat
// embeds, and its BTF into Go types. It refuses an object that an image
// cannot express: one with CO-RE relocations or calls between programs.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	object := flag.String("object", "", "compiled `file` to read")
	image := flag.String("image", "", "image `file` to write")
	types := flag.String("go", "", "Go `file` to write")
	flag.Parse()
	if err := run(*object, *image, *types); err != nil {
		fmt.Fprintln(os.Stderr, "flatten:", err)
		os.Exit(1)
	}
}

func run(object, image, types string) error {
	im, spec, err := flatten(object)
	if err != nil {
		return err
	}
	b := im.Encode()
	src, err := declare(spec.Types, b)
	if err != nil {
		return err
	}
	if err := os.WriteFile(image, b, 0o644); err != nil {
		return err
	}
	return os.WriteFile(types, src, 0o644)
}
