// Copyright 2026 The thole Authors
// SPDX-License-Identifier: Apache-2.0

package netbpf

import (
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/bpf/flat"
)

// The own addresses and the resolvers are kept by network namespace, as every
// namespace has its own. A namespace can only be told by its cookie, of which
// the kernel cannot be asked whether its namespace still exists. So nothing
// looks at the namespace: its addresses stay while the policy of any sandbox
// names it ([Image.InNetns]). Policies go when their sandbox is removed or
// swept, also after a launcher was killed or became its program, so there is
// no count that could be wrong and no lease that would need a process.
//
// What no policy names is dropped by Sweep, by the first SyncOwn of a
// namespace that is not listed yet, and when a map is full. At rest the maps
// thus hold the namespaces of the sandboxes there are and at most those whose
// last sandbox has ended since the last of these. The entries of 65,536
// addresses can then only run out if ten thousand namespaces have sandboxes
// in them at one time. Even that opens nothing: a namespace whose addresses
// could not all be written is not listed, and the programs take each address
// in it for the host's own.

// NetnsCookie returns the number by which the programs know the network
// namespace of the calling thread (SO_NETNS_COOKIE of socket(7), Linux 5.14).
// The kernel gives no cookie twice before it is started anew.
func NetnsCookie() (uint64, error) {
	const object = "network namespace"
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, &Error{Step: "identify", Object: object, Err: err}
	}
	defer unix.Close(fd)
	cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err == nil && cookie == 0 {
		err = unix.ENOTSUP
	}
	if err != nil {
		return 0, &Error{Step: "identify", Object: object, Err: err,
			Hint: "the kernel has no SO_NETNS_COOKIE, which came with Linux 5.14: policies that look at addresses need it"}
	}
	return cookie, nil
}

// InNetns returns the image with the network namespace that its sandbox is
// in: as long as the policy is in the kernel, the namespace's addresses stay
// listed. A policy that looks at no address needs none.
func (im *Image) InNetns(cookie uint64) *Image {
	named := *im
	named.policy.Netns = cookie
	return &named
}

// SyncOwn makes the own addresses of a network namespace exactly these, and
// lists it. On an error it is not listed, which refuses what these addresses
// would decide. Put a policy that names the namespace first: see
// [Image.InNetns].
func (e *Enforcer) SyncOwn(netns uint64, addrs []netip.Addr) error {
	return e.withAddresses(func() error {
		own, err := e.fd("own")
		if err != nil {
			return err
		}
		mark, one := flat.NsAddr{Netns: netns}, uint32(1)
		listed := mapLookup(own, &mark, &one) == nil
		if !listed {
			if err := e.dropNamespaces(netns); err != nil {
				return err
			}
		}
		err = e.syncSet("own", netns, addrs)
		if err == nil && !listed {
			one = 1
			if err = mapUpdate(own, &mark, &one, unix.BPF_ANY); err != nil {
				err = &Error{Step: "write map", Object: "own", Err: err, Hint: hint(err)}
			}
		}
		if err != nil {
			// What is missing must not count as somebody else's address.
			mapDelete(own, &mark)
		}
		return err
	})
}

// SyncResolvers makes the resolvers that mode Any may ask in a network
// namespace exactly these.
func (e *Enforcer) SyncResolvers(netns uint64, addrs []netip.Addr) error {
	return e.withAddresses(func() error { return e.syncSet("resolvers", netns, addrs) })
}

// withAddresses calls f while no other process changes the maps of addresses:
// a sweep must not read the policies before one is put that names a
// namespace, and drop the namespace after it was found to be listed.
func (e *Enforcer) withAddresses(f func() error) error {
	// The kernel's lock belongs to the descriptor, which goroutines share.
	e.addresses.Lock()
	defer e.addresses.Unlock()
	fd, err := e.leaseFD()
	if err != nil {
		return &Error{Step: "lock", Object: "addresses", Err: err, Hint: hint(err)}
	}
	// The byte after those of the ring slots.
	l := unix.Flock_t{Type: unix.F_WRLCK, Start: int64(flat.RingSlots), Len: 1}
	for {
		if err = unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLKW, &l); err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return &Error{Step: "lock", Object: "addresses", Err: err}
	}
	defer func() {
		l.Type = unix.F_UNLCK
		unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &l)
	}()
	return f()
}

// syncSet makes the addresses of a namespace exactly these.
func (e *Enforcer) syncSet(name string, netns uint64, addrs []netip.Addr) error {
	if netns == 0 {
		return &Error{Step: "write map", Object: name, Err: unix.EINVAL, Hint: "no network namespace has the cookie 0"}
	}
	fd, err := e.fd(name)
	if err != nil {
		return err
	}
	keys, err := mapKeys[flat.NsAddr](fd)
	if err != nil {
		return &Error{Step: "list map", Object: name, Err: err}
	}
	stale := map[[16]byte]bool{}
	for _, k := range keys {
		if k.Netns == netns && k.Addr != [16]byte{} {
			stale[k.Addr] = true
		}
	}
	one := uint32(1)
	for _, a := range addrs {
		// :: is the mark, and nobody's address.
		if !a.IsValid() || a == netip.IPv6Unspecified() {
			continue
		}
		k := flat.NsAddr{Netns: netns, Addr: a.As16()}
		if _, ok := stale[k.Addr]; !ok {
			err := mapUpdate(fd, &k, &one, unix.BPF_ANY)
			if isFull(err) {
				if err := e.dropNamespaces(netns); err != nil {
					return err
				}
				err = mapUpdate(fd, &k, &one, unix.BPF_ANY)
			}
			if err != nil {
				return &Error{Step: "write map", Object: name, Err: err, Hint: hint(err)}
			}
		}
		stale[k.Addr] = false
	}
	for a, gone := range stale {
		if gone {
			k := flat.NsAddr{Netns: netns, Addr: a}
			if err := mapDelete(fd, &k); err != nil && err != unix.ENOENT {
				return &Error{Step: "delete from map", Object: name, Err: err}
			}
		}
	}
	return nil
}

// isFull reports what an update of a hash map without a free entry returns.
func isFull(err error) bool { return err == unix.E2BIG || err == unix.ENOSPC }

// dropNamespaces deletes the addresses of every namespace but keep that no
// policy names.
func (e *Enforcer) dropNamespaces(keep uint64) error {
	named, err := e.namedNamespaces()
	if err != nil {
		return err
	}
	named[keep] = true
	for _, name := range []string{"own", "resolvers"} {
		fd, err := e.fd(name)
		if err != nil {
			return err
		}
		keys, err := mapKeys[flat.NsAddr](fd)
		if err != nil {
			return &Error{Step: "list map", Object: name, Err: err}
		}
		// The marks before what they vouch for.
		for _, marks := range []bool{true, false} {
			for i := range keys {
				if named[keys[i].Netns] || (keys[i].Addr == [16]byte{}) != marks {
					continue
				}
				if err := mapDelete(fd, &keys[i]); err != nil && err != unix.ENOENT {
					return &Error{Step: "delete from map", Object: name, Err: err}
				}
			}
		}
	}
	return nil
}

// namedNamespaces returns the network namespaces that policies name.
func (e *Enforcer) namedNamespaces() (map[uint64]bool, error) {
	fd, err := e.fd("policies")
	if err != nil {
		return nil, err
	}
	ids, err := mapKeys[uint64](fd)
	if err != nil {
		return nil, &Error{Step: "list map", Object: "policies", Err: err}
	}
	named := map[uint64]bool{}
	for i := range ids {
		var p flat.Policy
		if err := mapLookup(fd, &ids[i], &p); err == nil {
			named[p.Netns] = true
		} else if err != unix.ENOENT {
			return nil, &Error{Step: "read map", Object: "policies", Err: err}
		}
	}
	return named, nil
}
