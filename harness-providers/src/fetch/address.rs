//! Which addresses may be connected to.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A range of addresses.
#[derive(Clone, Copy, Debug)]
struct Network {
    base: IpAddr,
    prefix: u8,
}

impl Network {
    fn contains(self, address: IpAddr) -> bool {
        match (self.base, address) {
            (IpAddr::V4(base), IpAddr::V4(address)) => {
                let differ = base.to_bits() ^ address.to_bits();
                differ.leading_zeros() >= u32::from(self.prefix.min(32))
            }
            (IpAddr::V6(base), IpAddr::V6(address)) => {
                let differ = base.to_bits() ^ address.to_bits();
                differ.leading_zeros() >= u32::from(self.prefix.min(128))
            }
            _ => false,
        }
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Network {
    Network { base: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), prefix }
}

const fn v6(high: [u16; 6], low: [u16; 2], prefix: u8) -> Network {
    let [a, b, c, d, e, f] = high;
    let [g, h] = low;
    Network { base: IpAddr::V6(Ipv6Addr::new(a, b, c, d, e, f, g, h)), prefix }
}

/// Ranges that are not public, with what they are, from the registries of special addresses. The first
/// that contains an address names it.
const SPECIAL: &[(Network, &str)] = &[
    // A public address inside of one cloud, where it serves metadata.
    (v4(168, 63, 129, 16, 32), "metadata"),
    (v4(169, 254, 169, 254, 32), "metadata"),
    (v4(100, 100, 100, 200, 32), "metadata"),
    (v6([0xfd00, 0xec2, 0, 0, 0, 0], [0, 0x254], 128), "metadata"),
    (v4(0, 0, 0, 0, 8), "unspecified"),
    (v4(10, 0, 0, 0, 8), "private"),
    (v4(100, 64, 0, 0, 10), "private"),
    (v4(127, 0, 0, 0, 8), "loopback"),
    (v4(169, 254, 0, 0, 16), "link-local"),
    (v4(172, 16, 0, 0, 12), "private"),
    (v4(192, 0, 0, 0, 24), "reserved"),
    (v4(192, 0, 2, 0, 24), "documentation"),
    (v4(192, 88, 99, 0, 24), "translated"),
    (v4(192, 168, 0, 0, 16), "private"),
    (v4(198, 18, 0, 0, 15), "private"),
    (v4(198, 51, 100, 0, 24), "documentation"),
    (v4(203, 0, 113, 0, 24), "documentation"),
    (v4(224, 0, 0, 0, 4), "multicast"),
    (v4(240, 0, 0, 0, 4), "reserved"),
    (v6([0; 6], [0, 0], 128), "unspecified"),
    (v6([0; 6], [0, 1], 128), "loopback"),
    (v6([0, 0, 0, 0, 0, 0xffff], [0, 0], 96), "IPv4-mapped"),
    (v6([0; 6], [0, 0], 96), "IPv4-mapped"),
    (v6([0, 0, 0, 0, 0xffff, 0], [0, 0], 96), "translated"),
    (v6([0x64, 0xff9b, 0, 0, 0, 0], [0, 0], 96), "translated"),
    (v6([0x64, 0xff9b, 1, 0, 0, 0], [0, 0], 48), "translated"),
    (v6([0x2001, 0, 0, 0, 0, 0], [0, 0], 32), "translated"),
    (v6([0x2001, 0, 0, 0, 0, 0], [0, 0], 23), "reserved"),
    (v6([0x2001, 0xdb8, 0, 0, 0, 0], [0, 0], 32), "documentation"),
    (v6([0x2002, 0, 0, 0, 0, 0], [0, 0], 16), "translated"),
    (v6([0x3fff, 0, 0, 0, 0, 0], [0, 0], 20), "documentation"),
    (v6([0xfc00, 0, 0, 0, 0, 0], [0, 0], 7), "unique-local"),
    (v6([0xfe80, 0, 0, 0, 0, 0], [0, 0], 10), "link-local"),
    (v6([0xff00, 0, 0, 0, 0, 0], [0, 0], 8), "multicast"),
];

/// The only range from which public IPv6 addresses are given.
const PUBLIC_V6: Network = v6([0x2000, 0, 0, 0, 0, 0], [0, 0], 3);

/// An address that may not be connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an address of it is {kind} and not public")]
pub(super) struct Refused {
    pub(super) kind: &'static str,
}

/// The addresses that may be connected to: the public ones, and ranges that are allowed.
#[derive(Clone, Default)]
pub(super) struct Addresses {
    allowed: Vec<Network>,
}

impl Addresses {
    pub(super) fn allow(&mut self, base: IpAddr, prefix: u8) {
        self.allowed.push(Network { base, prefix });
    }

    pub(super) fn check(&self, address: IpAddr) -> Result<(), Refused> {
        if self.allowed.iter().any(|network| network.contains(address)) {
            // A translator that may be used must not lead to what may not.
            return match inside(address) {
                Some(inside) => self.check(IpAddr::V4(inside)),
                None => Ok(()),
            };
        }
        let special = SPECIAL.iter().find(|(network, _)| network.contains(address));
        match special {
            Some((_, kind)) => Err(Refused { kind }),
            None if address.is_ipv6() && !PUBLIC_V6.contains(address) => {
                Err(Refused { kind: "reserved" })
            }
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranges = self.allowed.iter().map(|network| (network.base, network.prefix));
        f.debug_list().entries(ranges).finish()
    }
}

/// The IPv4 address that packets to a mapped or translated address reach.
fn inside(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(address) = address else {
        return None;
    };
    let pair = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x64, 0xff9b, 1, _, _, _, high, low]
        | [0x2002, high, low, ..] => Some(pair(high, low)),
        [0x2001, 0, _, _, _, _, high, low] => Some(pair(!high, !low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kind(address: &str) -> &'static str {
        let refused = Addresses::default().check(address.parse().unwrap());
        refused.map_or_else(|refused| refused.kind, |()| "public")
    }

    #[test]
    fn ranges_have_their_kind() {
        for (expected, addresses) in [
            ("public", "1.1.1.1 8.8.8.8 100.63.255.255 100.128.0.0 172.15.255.255 172.32.0.0"),
            ("public", "169.253.255.255 192.0.1.0 198.17.255.255 198.20.0.0 223.255.255.255"),
            ("public", "2606:4700::1111 2a00:: 2001:200:: 2001:4860:4860::8888 3ffe::1"),
            ("loopback", "127.0.0.1 127.255.255.255 ::1"),
            ("private", "10.1.2.3 172.16.0.1 172.31.255.255 192.168.1.1 100.64.0.1 198.19.0.1"),
            ("link-local", "169.254.0.1 fe80::1 febf::1"),
            ("metadata", "169.254.169.254 168.63.129.16 100.100.100.200 fd00:ec2::254"),
            ("unique-local", "fc00::1 fdff::1"),
            ("multicast", "224.0.0.1 239.255.255.255 ff02::1"),
            ("unspecified", "0.0.0.0 0.1.2.3 ::"),
            ("reserved", "240.0.0.1 255.255.255.255 192.0.0.1 2001:2::1 5f00::1 4000::1 100::1"),
            ("IPv4-mapped", "::ffff:127.0.0.1 ::ffff:8.8.8.8 ::127.0.0.1 ::2"),
            (
                "translated",
                "64:ff9b::8.8.8.8 64:ff9b:1::1 2002:808:808::1 2001::1 ::ffff:0:8.8.8.8",
            ),
            ("documentation", "192.0.2.1 198.51.100.1 203.0.113.1 2001:db8::1 3fff::1"),
        ] {
            for address in addresses.split(' ') {
                assert_eq!(kind(address), expected, "{address}");
            }
        }
    }

    /// Every form of IPv6 address whose packets reach this IPv4 address.
    fn forms(address: Ipv4Addr, filler: u64) -> Vec<Ipv6Addr> {
        let bits = u128::from(address.to_bits());
        let low = |prefix: &str| {
            Ipv6Addr::from_bits(prefix.parse::<Ipv6Addr>().unwrap().to_bits() | bits)
        };
        let filler = u128::from(filler);
        vec![
            low("::ffff:0:0"),
            low("::ffff:0:0:0"),
            low("64:ff9b::"),
            low("64:ff9b:1::"),
            Ipv6Addr::from_bits(0x2002 << 112 | bits << 80 | filler),
            Ipv6Addr::from_bits(
                0x2001_0000 << 96 | (filler & 0xffff_ffff_ffff) << 32 | (!bits & 0xffff_ffff),
            ),
        ]
    }

    proptest! {
        #[test]
        fn no_form_of_an_address_is_public(bits: u32, filler: u64) {
            for form in forms(Ipv4Addr::from_bits(bits), filler) {
                prop_assert!(Addresses::default().check(form.into()).is_err(), "{}", form);
            }
        }

        #[test]
        fn an_allowed_translator_leads_to_what_is_allowed_only(bits: u32, filler: u64) {
            let address = Ipv4Addr::from_bits(bits);
            let mut addresses = Addresses::default();
            addresses.allow(Ipv6Addr::UNSPECIFIED.into(), 0);
            let direct = addresses.check(address.into());
            for form in forms(address, filler) {
                prop_assert_eq!(addresses.check(form.into()), direct, "{}", form);
            }
        }

        #[test]
        fn what_is_allowed_is_exactly_the_range(bits: u32, other: u32, prefix in 0u8..=32) {
            let mut addresses = Addresses::default();
            addresses.allow(Ipv4Addr::from_bits(bits).into(), prefix);
            let shift = 32 - u32::from(prefix);
            let same = bits.checked_shr(shift) == other.checked_shr(shift);
            let other = IpAddr::from(Ipv4Addr::from_bits(other));
            let public = Addresses::default().check(other).is_ok();
            prop_assert_eq!(addresses.check(other).is_ok(), same || public);
        }

        #[test]
        fn the_standard_library_agrees(bits: u32, wide: u128) {
            let old = Ipv4Addr::from_bits(bits);
            let not_public = old.is_loopback() || old.is_private() || old.is_link_local()
                || old.is_unspecified() || old.is_multicast() || old.is_broadcast()
                || old.is_documentation();
            prop_assert!(!not_public || Addresses::default().check(old.into()).is_err());
            let new = Ipv6Addr::from_bits(wide);
            let not_public = new.is_loopback() || new.is_unspecified() || new.is_multicast()
                || new.is_unique_local() || new.is_unicast_link_local();
            prop_assert!(!not_public || Addresses::default().check(new.into()).is_err());
        }
    }
}
