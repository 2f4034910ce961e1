//! A filter that looks at nothing but the number of a call. When a filter is added, the kernel tries it for
//! every number: a search in a tree of comparisons takes a fraction of the time of going through a list.
use std::collections::BTreeMap;

use libc::{BPF_JA, BPF_JGE, BPF_JMP, BPF_K, BPF_RET, c_long};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch, sock_filter};

use super::Result;

/// What happens to calls, by their numbers.
pub(super) struct Table {
    /// Neighbours differ. The first begins at 0.
    ranges: Vec<Range>,
}

/// Calls with the same answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    /// The lowest number. The highest is the one before the next range.
    from: u32,
    answer: u32,
}

impl Table {
    /// The answer to each of these calls, and to all others.
    ///
    /// # Errors
    /// If one of the numbers is none.
    pub(super) fn new(
        answers: &BTreeMap<c_long, SeccompAction>,
        otherwise: SeccompAction,
    ) -> Result<Self> {
        let otherwise = u32::from(otherwise);
        let mut ranges = vec![Range { from: 0, answer: otherwise }];
        let mut begin = |from, answer| {
            // A call directly after another takes the place of what would follow that one.
            if ranges.last().is_some_and(|last| last.from == from) {
                ranges.pop();
            }
            if ranges.last().is_none_or(|last| last.answer != answer) {
                ranges.push(Range { from, answer });
            }
        };
        for (call, answer) in answers {
            let number = u32::try_from(*call)?;
            begin(number, u32::from(answer.clone()));
            if let Some(next) = number.checked_add(1) {
                begin(next, otherwise);
            }
        }
        Ok(Self { ranges })
    }

    /// Whether it allows some calls and not others.
    pub(super) fn decides(&self) -> bool {
        self.ranges.len() > 1
    }

    /// The filter. A program of another processor is ended.
    ///
    /// # Errors
    /// If there is no filter for this processor.
    pub(super) fn program(&self) -> Result<BpfProgram> {
        let processor = TargetArch::try_from(std::env::consts::ARCH)?;
        // A filter without calls: it checks the processor, and returns.
        let (any, ended) = (SeccompAction::Allow, SeccompAction::KillProcess);
        let empty = SeccompFilter::new(BTreeMap::new(), any, ended, processor)?;
        let mut program: BpfProgram = empty.try_into()?;
        program.pop();
        program.push(instruction(LOAD, 0, [0, 0]));
        program.extend(tree(&self.ranges));
        Ok(program)
    }
}

/// Loads a part of the call, here the first: its number.
const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;

/// Finds the range of the loaded number, and returns its answer.
fn tree(ranges: &[Range]) -> BpfProgram {
    let (lower, higher) = ranges.split_at(ranges.len() / 2);
    let Some(first) = higher.first() else { return BpfProgram::new() };
    if lower.is_empty() {
        return vec![instruction(BPF_RET | BPF_K, first.answer, [0, 0])];
    }
    let (mut program, lower) = (BpfProgram::new(), tree(lower));
    match u8::try_from(lower.len()) {
        Ok(over) => program.push(instruction(BPF_JMP | BPF_JGE | BPF_K, first.from, [over, 0])),
        Err(_) => {
            // Only a jump without a condition goes as far.
            program.push(instruction(BPF_JMP | BPF_JGE | BPF_K, first.from, [0, 1]));
            let over = u32::try_from(lower.len()).unwrap_or(u32::MAX);
            program.push(instruction(BPF_JMP | BPF_JA, over, [0, 0]));
        }
    }
    program.extend(lower);
    program.extend(tree(higher));
    program
}

/// An instruction, and how many it skips if its condition holds and if not.
fn instruction(code: u32, value: u32, [jt, jf]: [u8; 2]) -> sock_filter {
    // The codes have 16 bits.
    sock_filter { code: u16::try_from(code).unwrap_or(u16::MAX), jt, jf, k: value }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use libc::{BPF_JA, BPF_JGE, BPF_JMP, BPF_K, BPF_RET, c_long};
    use seccompiler::{SeccompAction, sock_filter};

    use super::{LOAD, Table};

    /// Runs the part of a filter that comes after the check of the processor. Returns its answer and the
    /// number of instructions that were run.
    fn run(program: &[sock_filter], number: u32) -> (u32, usize) {
        let (mut at, mut steps) = (0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = program[at];
            steps += 1;
            at += 1;
            match u32::from(code) {
                LOAD => assert_eq!(k, 0),
                code if code == BPF_JMP | BPF_JGE | BPF_K => {
                    at += usize::from(if number >= k { jt } else { jf });
                }
                code if code == BPF_JMP | BPF_JA => at += k as usize,
                code if code == BPF_RET | BPF_K => return (k, steps),
                other => panic!("{other}"),
            }
        }
    }

    fn check(answers: &BTreeMap<c_long, SeccompAction>, last: u32) {
        let program = Table::new(answers, SeccompAction::Errno(38)).unwrap().program().unwrap();
        let after = &program[3..];
        let most = 3 + usize::BITS - (2 * answers.len() + 1).leading_zeros();
        for number in (0..last).chain([1 << 30, (1 << 30) + 1, u32::MAX - 1, u32::MAX]) {
            let answer = answers.get(&c_long::from(number)).cloned();
            let answer = answer.unwrap_or(SeccompAction::Errno(38));
            let (got, steps) = run(after, number);
            assert_eq!(got, u32::from(answer), "{number} of {answers:?}");
            // A jump that goes far takes two.
            assert!(steps <= 2 * most as usize, "{steps} for {number}");
        }
    }

    #[test]
    fn each_call_gets_its_answer_and_all_others_the_same() {
        let (allow, kill) = (SeccompAction::Allow, SeccompAction::KillProcess);
        let cases: [&[c_long]; 7] =
            [&[], &[0], &[1], &[0, 1, 2], &[5, 6, 8], &[0, 2, 4, 5], &[u32::MAX.into()]];
        for allowed in cases {
            let mut answers: BTreeMap<_, _> =
                allowed.iter().map(|call| (*call, allow.clone())).collect();
            check(&answers, 20);
            for killed in [0, 3, 5, 7] {
                answers.insert(killed, kill.clone());
                check(&answers, 20);
            }
        }
        // So many that some jumps go far.
        let every_second = (0..900).map(|call| (2 * call, allow.clone())).collect();
        check(&every_second, 2000);
    }

    #[test]
    fn what_is_no_number_is_refused() {
        let answers = BTreeMap::from([(-1, SeccompAction::Allow)]);
        assert!(Table::new(&answers, SeccompAction::KillProcess).is_err());
    }
}
