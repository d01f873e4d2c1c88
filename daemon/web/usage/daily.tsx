/** The month day by day: a plot per measure, and the same numbers as a table. */
import type { UsageGroup } from "../../../shared/api/usage.ts";
import { DayTable } from "./day-table.tsx";
import { daily, inWords, MEASURES } from "./numbers.ts";
import { Plot } from "./plot.tsx";

export function Daily({ days, groups }: { days: readonly string[]; groups: readonly UsageGroup[] }) {
  return (
    <div class="plots">
      {MEASURES.map((measure) => {
        const values = daily(days, groups, measure);
        const { key, name, unit } = measure;
        return (
          <section key={key} aria-labelledby={`plot-${key}`}>
            <h3 id={`plot-${key}`}>
              {name} <span class="muted">{unit} a day</span>
            </h3>
            <Plot
              days={days}
              unit={unit}
              lines={[{ values, name, look: "bars" }]}
              words={inWords(days, values, unit)}
            />
            <DayTable of={name} days={days} columns={[{ name: unit, values }]} />
          </section>
        );
      })}
    </div>
  );
}
