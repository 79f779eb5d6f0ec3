/** The name among `names` (not empty) that takes the fewest single-character changes to reach. */
export function nearest(name: string, names: readonly string[]): string {
  const [first = '', ...rest] = names;
  return rest.reduce((best, next) => (distance(name, next) < distance(name, best) ? next : best), first);
}

function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
