/** Credits over time: the balance at each day's end, when they run out, and the grants. */
import type { creditList, LedgerEntry } from "../../../shared/api/people/credits.ts";
import { Facts, Shown } from "../components/parts.tsx";
import { get } from "../data/api.ts";
import { useLoaded } from "../data/resource.ts";
import { ahead, type Credits, endInWords, leftAt, paceOf } from "./burn.ts";
import { DayTable } from "./day-table.tsx";
import { numberText } from "./numbers.ts";
import { Plot, type PlotLine } from "./plot.tsx";

const PAGE = 1000;
/** Some years of days. */
const MAX_PAGES = 3;

async function loadCredits(signal: AbortSignal): Promise<Credits> {
  const entries: LedgerEntry[] = [];
  for (let cursor: string | null = null, pages = 1; ; pages++) {
    const page: Awaited<ReturnType<typeof get<typeof creditList>>> = await get<typeof creditList>(
      "/v1/orgs/self/credits",
      { limit: PAGE, cursor },
      signal,
    );
    entries.push(...page.items);
    cursor = page.next_cursor;
    const { granted, used } = page;
    if (cursor === null || pages === MAX_PAGES) return { granted, used, entries, isAll: cursor === null };
  }
}

/** `days`: the days of the month up to now; `all`: the days of the whole month. */
export function CreditsLeft({
  days,
  all,
  asOf,
  isNow,
}: {
  days: readonly string[];
  all: readonly string[];
  asOf: string;
  isNow: boolean;
}) {
  const credits = useLoaded("credits", loadCredits, ({ event }) => /^(?:credits|org)\./.test(event));
  return (
    <Shown of={credits} rows={2}>
      {(known) => {
        const { granted, used } = known;
        if (granted === null) {
          return (
            <p>
              {endInWords(known, asOf)} {used > 0 ? `${numberText(used)} were used so far, by the price table.` : null}
            </p>
          );
        }
        const left = leftAt(known, days, asOf);
        const pace = paceOf(known, asOf);
        const known_: (number | null)[] = all.map((_, n) => left[n] ?? null);
        const lines: PlotLine[] = [{ name: "left", values: known_, look: "line" }];
        if (isNow && pace > 0) {
          lines.push({ name: "at this pace", values: ahead(granted - used, pace, asOf, all), look: "dashed" });
        }
        const words = `${numberText(Math.max(0, granted - used))} credits are left`;
        return (
          <>
            <Facts
              facts={[
                ["Left", numberText(Math.max(0, granted - used))],
                ["Granted", numberText(granted)],
                ["Used", numberText(used)],
                ["A day, last 7", numberText(pace)],
              ]}
            />
            <p>{endInWords(known, asOf)}</p>
            <Plot days={all} lines={lines} unit="credits" words={words} />
            <DayTable of="Credits" days={all} columns={lines} />
          </>
        );
      }}
    </Shown>
  );
}
