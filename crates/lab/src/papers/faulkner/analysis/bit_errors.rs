//! Section 4.1.1, figure 4-2: throughput over the bit error rate, predicted from the loss of packets and of frames.

use super::intact;
use crate::papers::faulkner::bit_errors::curve::measured;
use crate::papers::faulkner::drawing::Curves;
use crate::papers::faulkner::setting::{Channel, Scheme};
use crate::report::Figure;
use crate::reproduce::{Criterion, Ruling, Samples};

/// Packets in flight beside a lost one.
const OTHERS: i32 = 10;
/// Bits of a packet and of a frame, as section 4.1.1 has them.
const PACKET_BITS: f64 = 12_000.0;
const FRAME_BITS: f64 = 4000.0;

/// Normalised throughput predicted: for TCP the chance that none of the other ten packets in flight is lost.
fn predicted(scheme: Scheme, ber: f64) -> f64 {
    match scheme {
        Scheme::Tcp => intact(ber, PACKET_BITS * f64::from(OTHERS)),
        Scheme::TcpLl | Scheme::Unordered => intact(ber, FRAME_BITS),
    }
}

/// TCP's as it is printed, 1 - p^(11 - 1).
fn printed(ber: f64) -> f64 {
    1.0 - (1.0 - intact(ber, PACKET_BITS)).powi(OTHERS)
}

/// The bit error rate at which `bits` bits pass with the chance `level`.
fn level(level: f64, bits: f64) -> f64 {
    -libm::expm1(libm::log(level) / bits)
}

/// The root of the mean squared distance of the prediction from what was measured, as a part of what was measured at the
/// lowest bit error rate.
fn distance(samples: &Samples, scheme: Scheme) -> Option<f64> {
    let curve = measured(samples, scheme);
    let clear = curve.first()?.1.mean;
    let squares = curve.iter().map(|(ber, t)| (t.mean / clear - predicted(scheme, *ber)).powi(2));
    Some((squares.sum::<f64>() / curve.len() as f64).sqrt())
}

pub(super) fn rule(claim: &str, samples: &Samples) -> Option<Ruling> {
    if claim != "faulkner-bsc-prediction" {
        return None;
    }
    let (tcp, ll) = (level(0.99, PACKET_BITS * f64::from(OTHERS)), level(0.99, FRAME_BITS));
    Some(Ruling::all(vec![
        Criterion::within("TCP's 0.99 level, of 1e-7", tcp / 1e-7, 1.0 / 3.0, 3.0),
        Criterion::within("TCP-LL's 0.99 level, of 1e-6", ll / 1e-6, 1.0 / 3.0, 3.0),
        Criterion::told("rms distance to TCP measured", distance(samples, Scheme::Tcp)),
        Criterion::told("rms distance to TCP-LL measured", distance(samples, Scheme::TcpLl)),
        Criterion::told("the printed formula at 1e-5", printed(1e-5)),
        Criterion::told("the printed formula at 1e-4", printed(1e-4)),
    ]))
}

pub(super) fn figures(samples: &Samples) -> Vec<Figure> {
    let [tcp, ll] = [Scheme::Tcp, Scheme::TcpLl].map(|scheme| measured(samples, scheme));
    if tcp.is_empty() {
        return Vec::new();
    }
    // Ten points a decade from 1e-8 to 1e-3.
    let curve = |formula: &dyn Fn(f64) -> f64| -> Vec<(f64, f64)> {
        (0..=50).map(|k| libm::pow(10.0, -8.0 + 0.1 * f64::from(k))).map(|ber| (ber, formula(ber))).collect()
    };
    let svg = Curves::new("bit error rate", "normalised throughput")
        .log_x()
        .line("TCP, predicted: (1 - p)^10", 2, curve(&|ber| predicted(Scheme::Tcp, ber)))
        .line("TCP, as printed: 1 - p^10", 4, curve(&printed))
        .line("TCP-LL, predicted: 1 - p", 3, curve(&|ber| predicted(Scheme::TcpLl, ber)))
        .measured("TCP, measured", 0, &tcp)
        .measured("TCP-LL, measured", 1, &ll)
        .calculated("capacity", curve(&|ber| Channel::BitErrors(ber).capacity()))
        .svg();
    vec![Figure {
        name: "figure-4-2".to_owned(),
        title: "Figure 4-2: throughput over bit error rate, predicted".to_owned(),
        caption: "From the loss of packets of 12000 bits (TCP) and of frames of 4000 bits (TCP-LL), beside the means of figure \
                  4-1 with 95 % intervals, and the binary symmetric channel's capacity. Predictions leave headers out."
            .to_owned(),
        svg,
    }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_levels_are_where_the_predictions_are() {
        let tcp = level(0.99, PACKET_BITS * f64::from(OTHERS));
        assert!((predicted(Scheme::Tcp, tcp) - 0.99).abs() < 1e-12);
        assert!((tcp - 8.4e-8).abs() < 5e-10);
        assert!((level(0.99, FRAME_BITS) - 2.5e-6).abs() < 5e-8);
        assert!((printed(1e-4) - 0.972).abs() < 5e-4);
    }
}
