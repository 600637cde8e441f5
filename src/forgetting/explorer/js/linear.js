// Small dense linear algebra. A matrix is an array of rows, each a Float64Array.

export const zeros = (rows, columns) => Array.from({length: rows}, () => new Float64Array(columns));

export const dot = (a, b) => {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
};

export const norm = (a) => Math.hypot(...a);

/** A B, for A with rows of the length of B. */
export function product(A, B) {
  const columns = B.length ? B[0].length : 0;
  return A.map((row) => {
    const made = new Float64Array(columns);
    for (let i = 0; i < row.length; i++) {
      const factor = row[i], other = B[i];
      if (factor !== 0) for (let j = 0; j < columns; j++) made[j] += factor * other[j];
    }
    return made;
  });
}

export const transpose = (A, columns = A.length ? A[0].length : 0) =>
  Array.from({length: columns}, (_, j) => Float64Array.from(A, (row) => row[j]));

/** Takes the part along the orthonormal `basis` out of a vector, twice, so that what is left is orthogonal to it. */
function takeOut(vector, basis) {
  for (let again = 0; again < 2; again++)
    for (const direction of basis) {
      const along = dot(vector, direction);
      for (let i = 0; i < vector.length; i++) vector[i] -= along * direction[i];
    }
}

/** An orthonormal basis of the span of vectors of norm 1, the directions that most of them share first.
 *
 * The vector with the largest rest comes next. In this basis vectors at a small angle have one large coordinate and
 * small ones, the gaps, which keep their digits.
 */
export function pivotedBasis(vectors, tolerance) {
  const rests = vectors.map((vector) => Float64Array.from(vector)), basis = [];
  const limit = vectors.length ? vectors[0].length : 0;
  while (basis.length < limit) {
    let best = -1, most = tolerance;
    rests.forEach((rest, i) => { const size = norm(rest); if (size > most) [best, most] = [i, size]; });
    if (best < 0) break;
    const next = Float64Array.from(rests[best], (value) => value / most);
    takeOut(next, basis);
    const size = norm(next);
    basis.push(next.map((value) => value / size));
    for (const rest of rests) takeOut(rest, basis.slice(-1));
  }
  return basis;
}

/** An orthonormal basis of what is orthogonal to orthonormal vectors of dimension n, by reflections of Householder.
 *
 * A projection is made from this basis and not as 1 - u u^T, whose small entries are differences of large ones.
 */
export function complement(vectors, n) {
  const work = vectors.map((vector) => Float64Array.from(vector)), mirrors = [];
  work.forEach((vector, step) => {
    const mirror = new Float64Array(n);
    for (let i = step; i < n; i++) mirror[i] = vector[i];
    const size = norm(mirror), sign = mirror[step] < 0 ? -1 : 1;
    mirror[step] += sign * size;
    const square = dot(mirror, mirror);
    if (!(square > 0)) return;
    mirrors.push([mirror, 2 / square]);
    for (const other of work.slice(step + 1)) reflect(other, mirror, 2 / square);
  });
  return Array.from({length: n - vectors.length}, (_, i) => {
    const made = new Float64Array(n);
    made[vectors.length + i] = 1;
    for (let m = mirrors.length - 1; m >= 0; m--) reflect(made, ...mirrors[m]);
    return made;
  });
}

function reflect(vector, mirror, factor) {
  const along = factor * dot(mirror, vector);
  for (let i = 0; i < vector.length; i++) vector[i] -= along * mirror[i];
}

/** The singular value decomposition of a matrix with few rows: A = left diag(sigma) right, by Jacobi rotations of rows.
 *
 * `left` is orthogonal; `right` has orthonormal rows, and a row of zeros where sigma is 0.
 */
export function decompose(A) {
  const rows = A.map((row) => Float64Array.from(row)), count = rows.length;
  const left = Array.from({length: count}, (_, i) => Float64Array.from({length: count}, (_, j) => i === j ? 1 : 0));
  for (let sweep = 0, turned = true; turned && sweep < 60; sweep++) {
    turned = false;
    for (let i = 0; i < count; i++)
      for (let j = i + 1; j < count; j++) {
        const a = dot(rows[i], rows[i]), b = dot(rows[j], rows[j]), c = dot(rows[i], rows[j]);
        if (!(Math.abs(c) > 1e-16 * Math.sqrt(a) * Math.sqrt(b))) continue;
        turned = true;
        const zeta = (b - a) / (2 * c), t = (zeta < 0 ? -1 : 1) / (Math.abs(zeta) + Math.hypot(1, zeta));
        const cosine = 1 / Math.hypot(1, t), sine = cosine * t;
        for (const [one, two] of [[rows[i], rows[j]], [left[i], left[j]]])
          for (let n = 0; n < one.length; n++) {
            const x = one[n], y = two[n];
            one[n] = cosine * x - sine * y;
            two[n] = sine * x + cosine * y;
          }
      }
  }
  const sigma = Float64Array.from(rows, norm);
  const right = rows.map((row, i) => row.map((value) => sigma[i] > 0 ? value / sigma[i] : 0));
  return {left: transpose(left), sigma, right};
}

/** The singular values of a matrix, the largest first. */
export const singularValues = (A) => {
  const narrow = A.length && A.length > A[0].length ? transpose(A) : A;
  return Array.from(decompose(narrow).sigma).sort((a, b) => b - a);
};

/** X^+ for the stacked rows X: `solve` gives the solution of least squares with the smallest norm, for y. */
export function leastSquares(X) {
  const {left, sigma, right} = decompose(transpose(X)), most = Math.max(0, ...sigma);
  // X^T = left diag(sigma) right, so X^+ y = left diag(1/sigma) right y
  const solve = (y) => {
    const made = new Float64Array(left.length);
    sigma.forEach((value, i) => {
      if (!(value > 1e-13 * most)) return;
      const part = dot(right[i], y) / value;
      for (let n = 0; n < made.length; n++) made[n] += left[n][i] * part;
    });
    return made;
  };
  return {solve, spectrum: Array.from(sigma).sort((a, b) => b - a)};
}
