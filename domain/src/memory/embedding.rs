//! Embeddings: what a text means, as a direction.

/// More dimensions than any model of today has; a longer vector is a defect of its server.
pub const MAX_DIMENSION: usize = 8_192;

/// A vector of length one. So the cosine of two is their scalar product.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedding(Box<[f32]>);

impl Embedding {
    /// The direction of `values`. None where there is none: no values, more than [`MAX_DIMENSION`], one that is no finite number, or all zero.
    pub fn of(values: &[f32]) -> Option<Self> {
        if values.is_empty() || values.len() > MAX_DIMENSION {
            return None;
        }
        let length = values
            .iter()
            .map(|v| f64::from(*v) * f64::from(*v))
            .sum::<f64>()
            .sqrt();
        if !length.is_finite() || length == 0.0 {
            return None;
        }
        Some(Self(
            values
                .iter()
                .map(|v| (f64::from(*v) / length) as f32)
                .collect(),
        ))
    }

    /// Its numbers.
    pub fn values(&self) -> &[f32] {
        &self.0
    }

    /// How many they are, 1 to [`MAX_DIMENSION`].
    pub fn dimension(&self) -> usize {
        self.0.len()
    }

    /// The cosine with another of the same dimension, −1 to 1 within rounding; none where the dimensions differ.
    pub fn cosine(&self, other: &Self) -> Option<f32> {
        (self.dimension() == other.dimension())
            .then(|| self.0.iter().zip(&other.0).map(|(a, b)| a * b).sum::<f32>())
    }

    /// As stored: 32-bit floating point, the lowest byte first.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    /// From [`Self::to_bytes`]. None for what that never gives.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (numbers, rest) = bytes.as_chunks::<4>();
        let values: Vec<f32> = numbers.iter().map(|b| f32::from_le_bytes(*b)).collect();
        let length: f64 = values.iter().map(|v| f64::from(*v) * f64::from(*v)).sum();
        let stored = rest.is_empty() && values.len() <= MAX_DIMENSION;
        (stored && (length - 1.0).abs() < 1e-3).then(|| Self(values.into()))
    }
}

impl From<Embedding> for Vec<f32> {
    fn from(embedding: Embedding) -> Self {
        embedding.0.into_vec()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn every_embedding_has_length_one_and_keeps_its_direction() {
        for values in [vec![3.0, 4.0], vec![1e-30, 0.0], vec![-1e30, 1e30, 2e30]] {
            let embedding = Embedding::of(&values).unwrap();
            assert!((embedding.cosine(&embedding).unwrap() - 1.0).abs() < 1e-6);
            assert!(
                embedding
                    .values()
                    .iter()
                    .zip(&values)
                    .all(|(e, v)| e.signum() == v.signum())
            );
        }
        assert_eq!(Embedding::of(&[3.0, 4.0]).unwrap().values(), [0.6_f32, 0.8]);
    }

    #[test]
    fn what_has_no_direction_is_no_embedding() {
        for values in [
            vec![],
            vec![0.0, 0.0],
            vec![1.0, f32::NAN],
            vec![f32::INFINITY],
            vec![1.0; MAX_DIMENSION + 1],
        ] {
            assert_eq!(Embedding::of(&values), None);
        }
    }

    #[test]
    fn the_bytes_give_the_embedding_again_and_other_bytes_give_none() {
        let embedding = Embedding::of(&[0.5, -2.0, 7.25]).unwrap();
        let bytes = embedding.to_bytes();
        assert_eq!(bytes.len(), 12);
        assert_eq!(Embedding::from_bytes(&bytes), Some(embedding));
        for wrong in [&bytes[..11], &bytes[..8], &[], &[0xff; 12]] {
            assert_eq!(Embedding::from_bytes(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn other_dimensions_do_not_compare() {
        let two = Embedding::of(&[1.0, 0.0]).unwrap();
        let three = Embedding::of(&[1.0, 0.0, 0.0]).unwrap();
        assert_eq!(two.cosine(&three), None);
        assert_eq!(
            two.cosine(&Embedding::of(&[-1.0, 0.0]).unwrap()),
            Some(-1.0)
        );
    }
}
