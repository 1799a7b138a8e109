//! Decoders of crate kafka-protocol reserve room for as many elements as the peer announces, before the first is read. The
//! allocator of the program has to make such a reservation cost address space alone. docs/decisions/0002 has the reasons.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const GIB: usize = 1 << 30;

fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    let kib: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1024
}

#[test]
fn a_lying_count_costs_address_space_alone() {
    // 2^31 - 1 elements of 100 bytes: the most that a count of 32 bits can announce for a message of that size.
    let before = resident_bytes();
    let mut vectors = Vec::new();
    for _ in 0..3 {
        let mut vector: Vec<u8> = Vec::with_capacity(200 * GIB);
        vector.extend_from_slice(b"the first element, after which decoding fails");
        vectors.push(vector);
    }
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 1 << 20, "{} reservations of 200 GiB took {grown} bytes", vectors.len());
    drop(vectors);
    assert!(resident_bytes().saturating_sub(before) < 1 << 20);
}

#[test]
fn reservations_that_come_and_go_leave_nothing_behind() {
    let before = resident_bytes();
    for gib in 1..200 {
        let mut vector: Vec<u64> = Vec::with_capacity(gib * GIB / 8);
        vector.push(1);
    }
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 4 << 20, "{grown} bytes stay");
}
