//! The `support` program: each command is a process of its own.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

use std::fs;
use std::process::{Child, Command, Stdio};

struct Shop(tempfile::TempDir);

impl Shop {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn spawn(&self, args: &[&str]) -> Child {
        Command::new(env!("CARGO_BIN_EXE_support"))
            .args(args)
            .arg("--store")
            .arg(self.0.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    fn run(&self, args: &[&str]) -> String {
        let (code, out, err) = done(self.spawn(args));
        assert_eq!(code, Some(0), "{args:?}: {out}{err}");
        out
    }

    fn payments(&self) -> Vec<String> {
        let text = fs::read_to_string(self.0.path().join("payments.txt")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

fn done(child: Child) -> (Option<i32>, String, String) {
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn two_refunds_are_decided_by_two_processes() {
    let shop = Shop::new();
    let out = shop.run(&["start", "t-1", "o-7 and o-9 are broken"]);
    assert_eq!(out, "2 refunds wait for an approval\n");
    assert_eq!(shop.run(&["list"]).lines().count(), 2);
    assert!(shop.payments().is_empty());

    let out = shop.run(&["approve", "t-1", "o-9", "--cents", "500", "--by", "sam"]);
    assert_eq!(out, "1 refunds wait for an approval\n");
    assert_eq!(shop.payments(), ["o-9 500"], "the other refund does not hold it up");
    assert!(shop.run(&["list"]).contains(" o-7 "));
    let (code, _, err) = done(shop.spawn(&["approve", "t-1", "o-9"]));
    assert_eq!(code, Some(1), "it is decided");
    assert!(err.contains("no refund of `o-9` waits"), "{err}");

    let out = shop.run(&["reject", "t-1", "o-7", "it was never paid"]);
    assert!(out.contains("o-7: the call was denied and has not run: it was never paid"), "{out}");
    assert_eq!(shop.payments(), ["o-9 500"]);
    let shown = shop.run(&["show", "t-1"]);
    assert!(shown.starts_with("customer: o-7 and o-9 are broken\n"), "{shown}");
    assert!(shown.contains("A person changed the arguments of this call"), "{shown}");

    // The conversation continues on the same ticket.
    let out = shop.run(&["start", "t-1", "and what now?"]);
    assert_eq!(out, "Which order is it about?\n");
}

#[test]
fn fifty_processes_approve_fifty_refunds_in_any_order() {
    let shop = Shop::new();
    let orders: Vec<String> = (0..50).map(|n| format!("o-{n}")).collect();
    let out = shop.run(&["start", "t", &orders.join(" ")]);
    assert_eq!(out, "50 refunds wait for an approval\n");
    let mut order: Vec<usize> = (0..50).collect();
    let mut seed = 3_u64;
    for at in (1..order.len()).rev() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.swap(at, (seed >> 33) as usize % (at + 1));
    }
    // Five at a time, and each refund by two processes of which one is too late.
    for five in order.chunks(5) {
        let children = five.iter().flat_map(|&n| {
            let args = ["approve", "t", &orders[n]];
            [shop.spawn(&args), shop.spawn(&args)]
        });
        for child in children.collect::<Vec<_>>() {
            let (_, out, err) = done(child);
            assert!(!out.is_empty() || err.contains("waits for an approval"), "{out}{err}");
        }
    }
    assert!(shop.run(&["list"]).is_empty());
    let mut paid = shop.payments();
    paid.sort();
    let mut all: Vec<String> = Vec::new();
    for order in &orders {
        let price: u64 = order.bytes().map(u64::from).sum::<u64>() * 10;
        all.push(format!("{order} {price}"));
    }
    all.sort();
    assert_eq!(paid, all, "each once");
    assert!(shop.run(&["show", "t"]).lines().last().unwrap().contains("paid"));
}
