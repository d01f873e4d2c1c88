/** The page of usage: an organization's month, its plan's caps, its remaining credits, and its usage by group. */
import type { GROUPINGS, Grouping, UsageReport, usage } from "../../../shared/api/usage.ts";
import { Ask } from "../components/ask.tsx";
import { Choices, Empty, Head, Line, Shown } from "../components/parts.tsx";
import { Clock, Foreign } from "../components/text.tsx";
import { get } from "../data/api.ts";
import { useLoaded } from "../data/resource.ts";
import { Live } from "../shell/live-state.tsx";
import { hrefWith, place, setQuery } from "../shell/router.ts";
import { useTitle } from "../shell/title.ts";
import { Caps } from "./caps.tsx";
import { CreditsLeft } from "./credits.tsx";
import { Daily } from "./daily.tsx";
import { Groups } from "./groups.tsx";
import { daysOf, isMonth, isNothing, monthBy, monthText } from "./numbers.ts";

const GROUPS = ["room", "agent", "key", "day"] as const satisfies typeof GROUPINGS;

/** Usage grows with time; these events change it otherwise. */
const CHANGES = /^(?:room\.(?:created|destroyed)|sandbox\.(?:created|destroyed|standby|resume|updated)|credits\.)/;

export default function Usage() {
  useTitle("Usage");
  const { query } = place.value;
  const now = new Date().toISOString().slice(0, 7);
  const requestedMonth = query.get("month");
  const month = isMonth(requestedMonth) ? requestedMonth : now;
  const by = GROUPS.find((each) => each === query.get("by")) ?? "room";
  const load = (group_by: Grouping) => (signal: AbortSignal) =>
    get<typeof usage>("/v1/orgs/self/usage", { month, group_by }, signal);
  const touches = ({ event }: { event: string }) => month === now && CHANGES.test(event);
  const days = useLoaded(`days ${month}`, load("day"), touches);
  const groups = useLoaded(`groups ${month} ${by}`, load(by), touches);
  return (
    <>
      <Head title="Usage">
        <nav class="months" aria-label="Month">
          <a
            href={hrefWith({ month: monthBy(month, -1) })}
            aria-label={`The month before, ${monthText(monthBy(month, -1))}`}
          >
            ←
          </a>
          <b>{monthText(month)}</b>
          {month < now ? (
            <a
              href={hrefWith({ month: monthBy(month, 1) })}
              aria-label={`The month after, ${monthText(monthBy(month, 1))}`}
            >
              →
            </a>
          ) : null}
        </nav>
        <Live />
      </Head>
      <Shown of={days} rows={6}>
        {(report) => <Month report={report} month={month} isNow={month === now} again={days.again} />}
      </Shown>
      <h2>Breakdown</h2>
      <Choices
        label="By"
        of={GROUPS.map((each) => [each, `by ${each}`] as const)}
        at={by}
        choose={(each) => setQuery({ by: each === "room" ? null : each })}
      />
      <Shown of={groups}>
        {(report) =>
          isNothing(report.totals) ? (
            <Empty title={`Nothing was used in ${monthText(month)}.`} />
          ) : (
            <Groups key={`${month} ${by}`} by={by} report={report} />
          )
        }
      </Shown>
      <Ask names={["what-did-it-cost", "what-is-left"]} />
    </>
  );
}

function Month({
  report,
  month,
  isNow,
  again,
}: {
  report: UsageReport;
  month: string;
  isNow: boolean;
  again: () => void;
}) {
  const { period, as_of, plan, warnings, groups = [], totals } = report;
  const days = daysOf(period, as_of);
  return (
    <>
      <p class="lead muted">
        Plan <Foreign text={plan} />, as of <Clock at={as_of} />; days are in UTC.{" "}
        <button type="button" class="link" onClick={again}>
          Refresh
        </button>
      </p>
      {warnings.map((text) => (
        <p key={text} class="warning">
          {text}
        </p>
      ))}
      {isNothing(totals) ? (
        <Empty title={isNow ? "Nothing is used yet this month." : `Nothing was used in ${monthText(month)}.`}>
          {isNow ? (
            <>
              <p>Sandboxes, commands in them and messages are counted.</p>
              <Line words={["sandbox", "create", "build-42", "worker"]} />
            </>
          ) : null}
        </Empty>
      ) : (
        <>
          <h2>Day by day</h2>
          <Daily days={days} groups={groups} />
        </>
      )}
      <h2>Credits</h2>
      <CreditsLeft days={days} all={daysOf(period, period.end_at)} asOf={as_of} isNow={isNow} />
      <h2>Plan limits, now</h2>
      <Caps report={report} />
    </>
  );
}
