//! Threads that end, in order or not; what they do until then is tried on real devices.

use std::os::fd::AsFd as _;

use base::Duration;

use super::*;
use crate::daemon::account::{Part, Then};
use crate::readiness::{Interest, wait};

/// Threads that do this when they have their orders, and the first worker's bell.
fn threads(
    count: u32,
    run: fn(&Receiver<Order>, &mut Outbox) -> Result<usize, GatewayError>,
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
    let (workers, bell) = threads(2, fails);
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
fn accounts_are_asked_of_all_and_nothing_else_is_lost() {
    let answers = |orders: &Receiver<Order>, outbox: &mut Outbox| {
        let part = |then| Part { peers: Vec::new(), then };
        while let Ok(Order::Tell(number)) = orders.recv() {
            outbox.say(Report::Account(number, part(Then::From(7))));
            outbox.say(Report::SuperSegment(Some(None)));
            outbox.say(Report::Account(number, part(Then::End(serde_json::json!({})))));
            while !outbox.has_room() {
                outbox.flush();
                std::thread::yield_now();
            }
        }
        Ok(0)
    };
    let (workers, _bell) = threads(3, answers);
    let told = || loop {
        match workers.poll() {
            Some((worker, report)) => return (worker, report),
            None => std::thread::yield_now(),
        }
    };
    for number in 1..100 {
        assert_eq!(workers.ask(number).collect::<Vec<_>>(), [1, 2, 3]);
        let (mut ended, mut others) = (Vec::new(), 0);
        while ended.len() < 3 || others < 3 {
            match told() {
                (worker, Report::Account(of, Part { then: Then::End(_), .. })) if of == number => {
                    ended.push(worker);
                }
                (_, Report::SuperSegment(_)) => others += 1,
                _ => {}
            }
        }
        ended.sort_unstable();
        assert_eq!(ended, [1, 2, 3]);
    }
}
