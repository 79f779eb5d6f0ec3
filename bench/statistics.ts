/** The value below which a share of the others lie; NaN of nothing. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** To three digits: the runs differ by more. */
export function rounded(value: number): number {
  return Number(value.toPrecision(3));
}
