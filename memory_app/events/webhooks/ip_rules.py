"""Which IP addresses a webhook may connect to: public ones, and private ones where the operator allows them. Pure."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

IpAddress = IPv4Address | IPv6Address

# NAT64: the last 32 bits are an IPv4 address, to which a translator in the network leads.
_NAT64 = IPv6Network("64:ff9b::/96")
_LOCAL_NAT64 = IPv6Network("64:ff9b:1::/48")
# Where clouds hand out the secrets of a machine, beside the link-local 169.254.169.254: Azure's is public by its
# number, and those of Oracle, Alibaba and AWS (IPv6) would be allowed with private ones.
_OF_CLOUDS = frozenset(
    map(ip_address, ("168.63.129.16", "192.0.0.192", "100.100.100.200", "fd00:ec2::254")),
)


def is_allowed(text: str, *, allow_private: bool) -> bool:
    """Whether a webhook may connect to an address, such as ``203.0.113.5`` or ``::1``."""
    # Without the zone of a link-local address.
    address = _innermost(ip_address(text.partition("%")[0]))
    if address in _OF_CLOUDS or address.is_link_local or address.is_multicast or address.is_unspecified:
        return False
    if isinstance(address, IPv6Address) and address in _LOCAL_NAT64:
        return False
    # Loopback and ::1 count among the reserved ones.
    if address.is_loopback:
        return allow_private
    if address.is_reserved:
        return False
    # Neither of RFC 1918 and its like, nor shared by the customers of a carrier (100.64.0.0/10).
    is_public = address.is_global and not getattr(address, "is_site_local", False)
    return is_public or allow_private


def _innermost(address: IpAddress) -> IpAddress:
    """The IPv4 address that an IPv6 address stands for, where it does."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    # "::127.0.0.1", out of use but still understood by some systems.
    if 1 < int(address) < 2**32:
        return IPv4Address(int(address))
    return address
