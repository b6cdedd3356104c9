//! Network cards: progressive filling for streams that share links, egress and ingress caps.

use crate::arithmetic::{max, min};

/// Resources of a stream: link, outgoing and incoming network card.
const WAYS: usize = 3;

/// Resources that each of R remote streams shares.
///
/// The P resources are the links in use, then the outgoing and the incoming card of every device.
#[derive(Clone, Debug)]
pub struct Nics {
    streams: Vec<Sharer>,
    /// [P] seconds not yet granted
    left: Vec<f64>,
    /// [P] seconds taken per second gained by every active stream
    load: Vec<f64>,
}

#[derive(Clone, Debug)]
struct Sharer {
    resources: [usize; WAYS],
    /// for which a tuple occupies each of the resources
    seconds: [f64; WAYS],
    /// parts of the seconds that the stream gains
    parts: [f64; WAYS],
    /// sum of the seconds
    weight: f64,
    /// tuples in the send buffer
    demand: f64,
    /// tuples that may move
    granted: f64,
    /// whether the stream may still gain
    active: bool,
}

impl Nics {
    /// Network cards for `n_resources` resources.
    pub fn new(n_resources: usize) -> Self {
        Self { streams: vec![], left: vec![0.0; n_resources], load: vec![0.0; n_resources] }
    }

    /// Add a stream, of which a tuple occupies each resource for some seconds.
    pub fn add(&mut self, resources: [usize; WAYS], seconds: [f64; WAYS]) {
        let weight = seconds[0] + seconds[1] + seconds[2];
        self.streams.push(Sharer {
            resources,
            seconds,
            parts: seconds.map(|each| each / weight),
            weight,
            demand: 0.0,
            granted: 0.0,
            active: false,
        });
    }

    /// Tuples of the i-th stream that may move.
    #[inline]
    pub fn granted(&self, i: usize) -> f64 {
        self.streams[i].granted
    }

    /// Divide `dt` seconds of every resource among the streams, given their demands.
    ///
    /// Max-min fairness by progressive filling: all streams gain occupied seconds (of link and
    /// cards together) at the same pace; those whose buffer is empty or that meet an exhausted
    /// resource stop.
    pub fn grant(&mut self, dt: f64, demands: impl Iterator<Item = f64>) {
        self.left.fill(dt);
        let mut active = 0;
        for (stream, demand) in self.streams.iter_mut().zip(demands) {
            let free = stream.weight <= 0.0 || demand <= 0.0;
            stream.demand = demand;
            stream.granted = if free { demand } else { 0.0 };
            stream.active = !free;
            active += usize::from(!free);
        }
        // each pass stops a stream
        for _ in 0..self.streams.len() + self.left.len() {
            if active == 0 {
                break;
            }
            let pace = self.pace();
            for (left, load) in self.left.iter_mut().zip(&self.load) {
                *left -= pace * load;
            }
            active = self.gain(pace, 1e-12 * dt);
        }
    }

    /// Seconds that every active stream can gain until the first has to stop.
    fn pace(&mut self) -> f64 {
        let mut pace = f64::INFINITY;
        self.load.fill(0.0);
        for stream in self.streams.iter().filter(|stream| stream.active) {
            pace = min(pace, (stream.demand - stream.granted) * stream.weight);
            for (&resource, part) in stream.resources.iter().zip(stream.parts) {
                self.load[resource] += part;
            }
        }
        for (&left, &load) in self.left.iter().zip(&self.load) {
            if load > 0.0 {
                pace = min(pace, left / load);
            }
        }
        max(pace, 0.0)
    }

    /// Let active streams gain `pace` seconds; return how many remain active.
    fn gain(&mut self, pace: f64, tolerance: f64) -> usize {
        let mut active = 0;
        for stream in self.streams.iter_mut().filter(|stream| stream.active) {
            stream.granted += pace / stream.weight;
            if stream.granted >= stream.demand * (1.0 - 1e-12) {
                stream.granted = stream.demand;
                stream.active = false;
            }
            for (&resource, seconds) in stream.resources.iter().zip(stream.seconds) {
                if seconds > 0.0 && self.left[resource] <= tolerance {
                    stream.active = false;
                }
            }
            active += usize::from(stream.active);
        }
        active
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_stream_cannot_use_others_get() {
        // two links from one device, whose card carries 10 tuples/s
        let mut nics = Nics::new(4);
        nics.add([0, 2, 3], [0.0, 0.1, 0.0]);
        nics.add([1, 2, 3], [0.5, 0.1, 0.0]);
        nics.grant(1.0, [100.0, 1.0].into_iter());
        assert!((nics.granted(0) - 9.0).abs() < 1e-9);
        assert_eq!(nics.granted(1), 1.0);
    }

    #[test]
    fn streams_that_occupy_nothing_move_at_once() {
        let mut nics = Nics::new(3);
        nics.add([0, 1, 2], [0.0; 3]);
        nics.grant(1.0, [7.0].into_iter());
        assert_eq!(nics.granted(0), 7.0);
    }
}
