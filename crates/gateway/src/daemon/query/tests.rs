use std::io::Read as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::SocketAddr;

use serde_json::json;

use super::*;

fn connect(place: &Place) -> UnixStream {
    UnixStream::connect_addr(&place.address().unwrap()).unwrap()
}

/// A place of this process alone.
fn place(device: &str) -> Place {
    Place::new(device, u64::from(std::process::id()))
}

fn text(status: &serde_json::Value) -> Text {
    Text::from([status.to_string()])
}

fn open(place: &Place) -> Queries {
    Queries::open(place.device(), u64::from(std::process::id())).unwrap()
}

#[test]
fn a_question_has_an_answer_and_a_name_one_gateway() {
    let place = place("asked0");
    let told = |places: &[Place]| ask(places).pop().unwrap().status;
    assert!(matches!(told(std::slice::from_ref(&place)), Err(AskError::System(_))), "nobody listens");
    let mut queries = open(&place);
    let again = Queries::open(place.device(), u64::from(std::process::id()));
    assert_eq!(again.unwrap_err().kind(), io::ErrorKind::AddrInUse);
    assert!(running().unwrap().contains(&place));
    // Nobody asks: nothing is wanted, and nothing blocks; then there is a pause.
    queries.serve(Instant::ZERO, true);
    assert!(!queries.are_asked());
    let again = Instant::ZERO + STRANGER_PAUSE;
    assert_eq!(
        (queries.fd(Instant::ZERO).is_none(), queries.poll_timeout(Instant::ZERO)),
        (true, Some(again))
    );
    assert!(queries.fd(again).is_some() && queries.poll_timeout(again).is_none());
    let asker = std::thread::spawn({
        let places = [place.clone()];
        move || ask(&places).pop().unwrap().status
    });
    while !queries.are_asked() {
        queries.serve(again, true);
        queries.look_at = again;
    }
    // A status that was begun before the question is not for it.
    queries.answer(again, Instant::ZERO, &text(&json!({ "pid": 6 })));
    assert!(queries.are_asked());
    queries.answer(again, again, &text(&json!({ "pid": 7 })));
    assert!(!queries.are_asked());
    let answer = asker.join().unwrap().unwrap();
    assert_eq!((&answer["pid"], &answer["answered_by_user"]), (&7.into(), &own_user().into()));
    drop(queries);
    assert!(!running().unwrap().contains(&place));
}

/// A status that is longer than a socket's buffer arrives whole while no other is made, also beside askers who do not read theirs; those are
/// given up.
#[test]
fn long_answers_go_on_side_by_side_and_not_for_ever() {
    let place = place("long0");
    let mut queries = open(&place);
    let pieces = ["{\"long\":\"", &"x".repeat(3 << 20), "", &"y".repeat(5 << 20), "\"}"];
    let long: Text = pieces.map(str::to_owned).into_iter().collect();
    let silent: Vec<UnixStream> = (0..2 * MOST_ANSWERING).map(|_| connect(&place)).collect();
    queries.serve(Instant::ZERO, true);
    assert_eq!(queries.asking.len(), 2 * MOST_ANSWERING);
    queries.answer(Instant::ZERO, Instant::ZERO, &long);
    assert_eq!(queries.answering.len(), MOST_ANSWERING);
    let asker = std::thread::spawn({
        let places = [place];
        move || ask(&places).pop().unwrap().status
    });
    // However late the asker's thread is, those before it are not given up meanwhile.
    let mut now = Instant::from_nanos(1);
    while !queries.are_asked() {
        queries.look_at = now;
        queries.serve(now, true);
        std::thread::yield_now();
    }
    queries.answer(now, now, &long);
    let sent = |queries: &Queries| {
        let its = queries.answering.back().filter(|it| it.asker.asked > Instant::ZERO)?;
        Some(long[..its.pieces].iter().map(String::len).sum::<usize>() + its.sent)
    };
    while !asker.is_finished() {
        let before = sent(&queries);
        assert!(before.is_none() || queries.poll_timeout(now) <= Some(now + ANSWER_PAUSE));
        // As the daemon does, but for its waiting; so no asker's time is up before this one has its answer.
        now += Duration::from_nanos(1);
        queries.go_on_at = now;
        queries.serve(now, false);
        assert!(sent(&queries).is_none_or(|after| after <= before.unwrap() + ANSWER_AT_ONCE));
        std::thread::yield_now();
    }
    assert_eq!(asker.join().unwrap().unwrap()["long"].as_str().unwrap().len(), 8 << 20);
    assert_eq!(queries.answering.len(), MOST_ANSWERING - 1);
    queries.serve(now + PATIENCE, false);
    assert!(queries.answering.is_empty() && queries.poll_timeout(now + PATIENCE).is_none());
    drop(silent);
}

/// Those who may not ask are gone at once and cost no answer; who asks behind thousands of them is answered soon.
#[test]
fn a_queue_of_connections_is_emptied() {
    let place = place("queue0");
    let mut queries = open(&place);
    let mut waiting = 0;
    loop {
        let asker = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None).unwrap();
        asker.set_nonblocking(true).unwrap();
        if asker.connect(&socket2::SockAddr::unix(format!("\0{}", place.name())).unwrap()).is_err() {
            break;
        }
        waiting += 1;
    }
    let mut now = Instant::ZERO;
    let mut last = connect_when_there_is_room(&place, &mut queries, &mut now);
    while last.read(&mut [0; 1]).is_err() {
        queries.serve(now, true);
        assert!(queries.asking.len() <= MOST_ASKING);
        queries.answer(now, now, &text(&json!({})));
        now = queries.look_at;
    }
    // Of time as the daemon counts it: a queue of 4096 in less than two seconds, though all of them are answered.
    let most = Duration::from_micros(400).saturating_mul(waiting + 100);
    assert!(now <= Instant::ZERO + most, "{waiting} waited, {now:?}");
}

fn connect_when_there_is_room(place: &Place, queries: &mut Queries, now: &mut Instant) -> UnixStream {
    queries.serve(*now, true);
    *now = queries.look_at;
    let stream = connect(place);
    stream.set_nonblocking(true).unwrap();
    stream
}

/// Anybody may listen under any name: such names are no devices, and a listener that takes nobody holds no asker up for ever.
#[test]
fn names_and_listeners_of_others_do_no_harm() {
    let bytes = [b"longhaul-gateway/".as_slice(), &[0xff, 0x1b, b'[']].concat();
    let _odd = UnixListener::bind_addr(&SocketAddr::from_abstract_name(bytes).unwrap()).unwrap();
    let wrong = Place::new("\u{1b}[31mevil", 7);
    let _wrong = UnixListener::bind_addr(&wrong.address().unwrap()).unwrap();
    let printable = |place: &Place| place.device().bytes().all(|byte| byte.is_ascii_graphic());
    assert!(running().unwrap().iter().all(printable));
    let [silent, full, dripping] = [place("silent0"), place("lo"), place("drips0")];
    let _silent = UnixListener::bind_addr(&silent.address().unwrap()).unwrap();
    let _full = open(&full);
    let mut waiting = Vec::new();
    while let Some(asker) = {
        let asker = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None).unwrap();
        asker.set_nonblocking(true).unwrap();
        asker
            .connect(&socket2::SockAddr::unix(format!("\0{}", full.name())).unwrap())
            .is_ok()
            .then_some(asker)
    } {
        waiting.push(asker);
    }
    let drips = UnixListener::bind_addr(&dripping.address().unwrap()).unwrap();
    let dripper = std::thread::spawn(move || {
        let (mut asker, _) = drips.accept().unwrap();
        while asker.write_all(b" ").is_ok() {
            crate::clock::sleep(Duration::from_millis(100));
        }
    });
    let asked = ask(&[silent, full, dripping]);
    assert_eq!(asked.len(), 3);
    for Asked { device, status } in asked {
        assert!(matches!(status, Err(AskError::Silent)), "{device}: {status:?}");
    }
    dripper.join().unwrap();
}
