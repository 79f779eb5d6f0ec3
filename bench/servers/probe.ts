/** Loaded before a server's own code: tells the bench, whenever it asks, how many milliseconds of processor it has used. */
process.on('message', () => {
  const { user, system } = process.cpuUsage();
  process.send?.((user + system) / 1_000);
});
// Neither does the bench keep the server alive, nor does the server outlive the bench.
process.channel?.unref();
process.on('disconnect', () => process.exit());
