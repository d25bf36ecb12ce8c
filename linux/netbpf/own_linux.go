// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package netbpf

import (
	"context"
	"net/netip"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// OwnAddrs returns the addresses of this network namespace's interfaces,
// sorted, without zones (rtnetlink(7), RTM_GETADDR).
func OwnAddrs() ([]netip.Addr, error) {
	tab, err := syscall.NetlinkRIB(syscall.RTM_GETADDR, syscall.AF_UNSPEC)
	if err != nil {
		return nil, &Error{Step: "list", Object: "host addresses", Err: err}
	}
	msgs, err := syscall.ParseNetlinkMessage(tab)
	if err != nil {
		return nil, &Error{Step: "list", Object: "host addresses", Err: err}
	}
	var out []netip.Addr
	for i := range msgs {
		if msgs[i].Header.Type != syscall.RTM_NEWADDR {
			continue
		}
		attrs, err := syscall.ParseNetlinkRouteAttr(&msgs[i])
		if err != nil {
			return nil, &Error{Step: "list", Object: "host addresses", Err: err}
		}
		for _, a := range attrs {
			// LOCAL is this end and ADDRESS the other of a point-to-point
			// link; otherwise they are equal and IPv6 has ADDRESS alone.
			if a.Attr.Type != unix.IFA_LOCAL && a.Attr.Type != unix.IFA_ADDRESS {
				continue
			}
			if a.Attr.Type == unix.IFA_ADDRESS && hasLocal(attrs) {
				continue
			}
			if ip, ok := netip.AddrFromSlice(a.Value); ok {
				out = append(out, ip.Unmap())
			}
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out), nil
}

func hasLocal(attrs []syscall.NetlinkRouteAttr) bool {
	return slices.ContainsFunc(attrs, func(a syscall.NetlinkRouteAttr) bool { return a.Attr.Type == unix.IFA_LOCAL })
}

// WatchOwn calls f with the host's addresses, now and after each change, until
// ctx ends or the kernel cannot be asked. f is not called twice with the same
// list.
func WatchOwn(ctx context.Context, f func([]netip.Addr)) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return &Error{Step: "watch", Object: "host addresses", Err: err}
	}
	defer unix.Close(fd)
	groups := uint32(unix.RTMGRP_IPV4_IFADDR | unix.RTMGRP_IPV6_IFADDR)
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups}); err != nil {
		return &Error{Step: "watch", Object: "host addresses", Err: err}
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return &Error{Step: "watch", Object: "host addresses", Err: err}
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		unix.Write(wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
		close(ended)
	})
	defer func() {
		// The descriptor must outlive the function that writes to it.
		if !stop() {
			<-ended
		}
		unix.Close(wake)
	}()
	var last []netip.Addr
	for first := true; ; first = false {
		now, err := OwnAddrs()
		if err != nil {
			return err
		}
		if first || !slices.Equal(now, last) {
			f(now)
			last = now
		}
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(wake), Events: unix.POLLIN}}
		if _, err := unix.Poll(p, -1); err != nil && err != unix.EINTR {
			return &Error{Step: "watch", Object: "host addresses", Err: err}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		// What the messages say is asked anew, so that lost ones do no harm.
		var buf [8192]byte
		for {
			if _, _, err := unix.Recvfrom(fd, buf[:], 0); err != nil && err != unix.ENOBUFS {
				break
			}
		}
	}
}
