/**
 * Benchmark of the effect of a much watched room on others: 1,000 messages per second in it, without watchers and with 20 that follow its
 * events, in alternation with an idle host. The limit with watchers is twice the p99 without them; the cost of the messages alone is
 * reported too.
 */
import { asking, noSamples, otherOrganization, PROBES, probe } from "./load/other-organization.ts";
import { summarize } from "./load/stats.ts";
import type { Bench } from "./report.ts";

const USUAL_COUNT = 3000;
const ROUNDS = 3;
const WATCHERS = 20;
const PER_SECOND = 1000;
const ROOM = "/v1/rooms/watched";

export async function benchWatchers({ report, count = USUAL_COUNT, start }: Bench): Promise<void> {
  const daemon = await start({ guests: false });
  await daemon.room("watched");
  await using other = await otherOrganization(daemon);
  const each = Math.ceil(count / ROUNDS);
  const [quiet, busy, watched] = [noSamples(), noSamples(), noSamples()];
  const sent: number[] = [];
  const received: number[] = [];
  const source = () => asking("event-source.ts", String(PER_SECOND), `${daemon.url}${ROOM}/messages`, daemon.apiKey);
  await probe(other, each, noSamples());
  for (let round = 0; round < ROUNDS; round++) {
    await probe(other, each, quiet);
    const endBusy = await source();
    await probe(other, each, busy);
    await endBusy();
    const endWatchers = await asking(
      "event-watchers.ts",
      String(WATCHERS),
      `${daemon.url}${ROOM}/events`,
      daemon.apiKey,
    );
    const startedAt = performance.now();
    const endSource = await source();
    await probe(other, each, watched);
    const made = await endSource();
    const seconds = (performance.now() - startedAt) / 1000;
    sent.push(made / seconds);
    received.push((await endWatchers()) / seconds);
  }
  for (const kind of PROBES) {
    report.add(`watched_${kind}`, "ms", watched[kind], `busy_${kind}`);
    report.add(`busy_${kind}`, "ms", busy[kind], `quiet_${kind}`);
    report.add(`quiet_${kind}`, "ms", quiet[kind]);
    const p99 = summarize(watched[kind]).p99;
    report.add(`watched_${kind}_p99_to_busy`, "×", [p99 / summarize(busy[kind]).p99], undefined, {
      of: "p50",
      most: 2,
    });
    report.add(`watched_${kind}_p99_to_quiet`, "×", [p99 / summarize(quiet[kind]).p99]);
  }
  report.add("sent_per_second", "1/s", sent, undefined, { of: "p50", least: PER_SECOND * 0.95 });
  report.add("told_per_second", "1/s", received, undefined, { of: "p50", least: WATCHERS * PER_SECOND * 0.9 });
}
