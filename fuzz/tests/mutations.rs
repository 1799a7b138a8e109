//! The functions of all kinds of input over their seeds, the kept corpus and random mutations of both. Runs on stable Rust;
//! `FUZZ_SECONDS` says for how long in all (default 60), `FUZZ_SEED` where the random numbers begin, `FUZZ_TARGET` that one target alone is run.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]
#![allow(clippy::disallowed_methods, reason = "it reads its corpus and the clock of the machine")]

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use fuzzing::{TARGETS, Target};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Largest input.
const INPUT_BYTES_MAX: usize = 16 * 1024;
/// Most memory of the process.
const RESIDENT_KIB_MAX: u64 = 512 * 1024;
/// Numbers at which code often goes wrong.
const EDGES: [i64; 12] =
    [0, 1, -1, 127, 255, 32_767, 65_535, i32::MAX as i64, i32::MIN as i64, u32::MAX as i64, i64::MAX, i64::MIN];

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

fn kept(target: &Target) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

fn mutate(input: &mut Vec<u8>, other: &[u8], rng: &mut StdRng) {
    for _ in 0..rng.random_range(1..5) {
        let at = rng.random_range(0..=input.len());
        let len = rng.random_range(0..=8).min(input.len() - at);
        match rng.random_range(0..7) {
            0 if at < input.len() => input[at] ^= 1 << rng.random_range(0..8),
            1 if at < input.len() => input[at] = rng.random(),
            2 => drop(input.drain(at..at + len)),
            3 => input.insert(at, rng.random()),
            4 => {
                let edge = EDGES[rng.random_range(0..EDGES.len())].to_be_bytes();
                let size = [1, 2, 4, 8][rng.random_range(0..4)];
                input.splice(at..(at + size).min(input.len()), edge[8 - size..].iter().copied());
            }
            5 => {
                let from = rng.random_range(0..=other.len());
                input.splice(at.., other[from..].iter().copied());
            }
            _ => input.truncate(at.max(1)),
        }
    }
    input.truncate(INPUT_BYTES_MAX);
}

fn run(target: &Target, input: &[u8], what: &str) {
    if catch_unwind(AssertUnwindSafe(|| (target.run)(input))).is_err() {
        let hex: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
        panic!("target {} fails on {what}; keep the bytes in fuzz/corpus/{}:\n{hex}", target.name, target.name);
    }
}

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn no_input_breaks_a_rule() {
    let share = Duration::from_secs(number("FUZZ_SECONDS", 60)) / TARGETS.len() as u32;
    let seed = number("FUZZ_SEED", 1);
    let only = std::env::var("FUZZ_TARGET").ok();
    for target in TARGETS.iter().filter(|target| only.as_ref().is_none_or(|only| only == target.name)) {
        let mut inputs = (target.seeds)();
        inputs.extend(kept(target));
        assert!(!inputs.is_empty(), "{}", target.name);
        for (at, input) in inputs.iter().enumerate() {
            run(target, input, &format!("input {at}"));
        }
        let mut rng = StdRng::seed_from_u64(seed);
        let (begun, mut runs) = (Instant::now(), 0u64);
        while begun.elapsed() < share {
            let mut input = inputs[rng.random_range(0..inputs.len())].clone();
            let other = &inputs[rng.random_range(0..inputs.len())];
            mutate(&mut input, other, &mut rng);
            run(target, &input, &format!("mutation {runs} of seed {seed}"));
            runs += 1;
        }
        // Not by the macro, whose output a passing test keeps to itself.
        writeln!(std::io::stderr(), "fuzz {}: {} kept inputs, {runs} mutations", target.name, inputs.len()).unwrap();
    }
    assert!(peak_kib() < RESIDENT_KIB_MAX, "{} KiB", peak_kib());
}
