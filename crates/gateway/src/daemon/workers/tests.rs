//! Threads that end, in order or not; what they do until then is tried on real devices.

use std::os::fd::AsFd as _;

use base::Duration;

use super::*;
use crate::readiness::{Interest, wait};

/// Threads that do this when they have their orders, and the first worker's bell.
fn threads(
    count: u32,
    run: fn(&Receiver<Order>, &mut Outbox) -> Result<(), GatewayError>,
) -> (Workers, Bell) {
    let bell = Bell::new().unwrap();
    let (reports, receiver) = mpsc::sync_channel(2);
    let mut threads = Threads { running: Vec::new(), reports: Some(receiver) };
    for number in 1..=count {
        let outbox = Outbox::new(number, reports.clone(), bell.clone());
        threads.start(outbox, Bell::new().unwrap(), run).unwrap();
    }
    (Workers { threads, ..Workers::default() }, bell)
}

fn wait_for(bell: &Bell) {
    assert!(wait([Interest::read(bell.as_fd())], Some(Duration::from_secs(60))).unwrap()[0].read);
}

#[test]
fn a_worker_that_panics_or_fails_is_told_of() {
    let fails = |orders: &Receiver<Order>, _: &mut Outbox| match orders.recv() {
        Ok(Order::Restored) => panic!("on purpose"),
        _ => Err(io::Error::other("the socket is gone").into()),
    };
    let (mut workers, bell) = threads(2, fails);
    for (worker, order, want) in
        [(1, Order::Restored, "worker 1: it has panicked"), (2, Order::Tell(0), "the socket is gone")]
    {
        workers.threads.order(worker, order);
        wait_for(&bell);
        bell.answer();
        let Some((number, Report::Ended(Err(error)))) = workers.poll() else { panic!("it has ended") };
        assert_eq!((number, error.to_string().as_str()), (worker, want));
    }
    // Nobody waits for who has ended, whether to be heard or for an answer.
    (0..2 * MOST_ORDERS).for_each(|_| workers.threads.order_all(|| Order::Restored));
}

#[test]
fn accounts_are_of_those_who_answer_and_nothing_else_is_lost() {
    let answers = |orders: &Receiver<Order>, outbox: &mut Outbox| {
        while let Ok(order) = orders.recv() {
            match order {
                Order::Tell(number) => {
                    let account = Account { whole: serde_json::json!({}), peers: Vec::new() };
                    // One for a question that was given up, and something that has nothing to do with it.
                    let former = Account { whole: serde_json::json!({}), peers: Vec::new() };
                    outbox.say(Report::Account(number - 1, Box::new(former)));
                    outbox.say(Report::SuperSegment(Some(None)));
                    outbox.say(Report::Account(number, Box::new(account)));
                    while !outbox.has_room() {
                        outbox.flush();
                        std::thread::yield_now();
                    }
                }
                _ => break,
            }
        }
        Ok(())
    };
    let (mut workers, _bell) = threads(3, answers);
    for _ in 0..100 {
        workers.ask();
        assert_eq!(workers.accounts().len(), 3);
        let told = std::iter::from_fn(|| workers.poll());
        assert_eq!(told.filter(|(_, report)| matches!(report, Report::SuperSegment(_))).count(), 3);
    }
    // One that is gone is not waited for.
    workers.threads.order(2, Order::End);
    workers.ask();
    assert_eq!(workers.accounts().len(), 2);
}
