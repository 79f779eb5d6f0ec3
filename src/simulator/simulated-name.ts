/** Says in the model's name that no model answered, as a provider names the snapshot behind an alias. */
export function simulatedName(model: string): string {
  return model.includes('simulat') ? model : `${model}-simulated`;
}
