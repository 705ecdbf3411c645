//! When a summary is asked for again that failed.

use recede::session::Attempts;

/// The turns at which a summarizer is asked that always fails, where each turn costs so much.
fn asked(turns: usize, cost: usize, budget: usize) -> Vec<usize> {
    let mut attempts = Attempts::default();
    let ask = |turn: &usize| {
        let may = attempts.may_ask(*turn, turn * cost, budget);
        if may {
            attempts.fail(*turn, turn * cost);
            assert!(!attempts.may_ask(*turn, turn * cost, budget), "the same messages are asked for once");
        }
        may
    };
    (1..=turns).filter(ask).collect()
}

#[test]
fn each_failure_doubles_the_wait_up_to_64_turns() {
    assert_eq!(asked(300, 1, 0), [1, 2, 4, 8, 16, 32, 64, 128, 192, 256]);
}

#[test]
fn a_quarter_of_the_budget_must_be_new() {
    assert_eq!(asked(40, 10, 400), [1, 11, 21, 31]);
    assert_eq!(asked(40, 10, 401), [1, 12, 23, 34]);
}

#[test]
fn numbers_of_a_damaged_file_do_no_harm() {
    let damaged = Attempts { failures: usize::MAX, turns: usize::MAX, cost: usize::MAX };
    assert!(!damaged.may_ask(0, 0, usize::MAX));
    let mut again = damaged;
    again.fail(1, 1);
    assert_eq!(again.failures, usize::MAX);
    assert!(!again.may_ask(64, 9, 0) && again.may_ask(65, 9, 0));
}
