/** The page of an agent's usage: now, and in this month. */

import type { topGet } from "../../../shared/api/overview/top.ts";
import type { sandboxMetrics } from "../../../shared/api/sandboxes.ts";
import type { UsageTotals, usage } from "../../../shared/api/usage.ts";
import { Ask } from "../components/ask.tsx";
import { Empty, Facts, Shown, Trouble } from "../components/parts.tsx";
import { Table } from "../components/table.tsx";
import { Clock, countText, sizeText, spanText } from "../components/text.tsx";
import { get } from "../data/api.ts";
import { useLoaded } from "../data/resource.ts";
import { loadOrProblem } from "./or-problem.ts";
import { isThere, sandboxPath, type TabProps } from "./tab.ts";

export default function Usage({ room, agentId, sandbox }: TabProps) {
  const now = useLoaded(`used now ${sandbox?.sandbox_id} ${sandbox?.state}`, async (signal) => {
    if (!isThere(sandbox)) return null;
    const [top, metrics] = await Promise.all([
      get<typeof topGet>("/v1/top", { room_id: room.room_id }, signal),
      loadOrProblem(() => get<typeof sandboxMetrics>(`${sandboxPath(sandbox)}/metrics`, {}, signal)),
    ]);
    return { item: top.items.find(({ sandbox_id }) => sandbox_id === sandbox.sandbox_id), at: top.at, metrics };
  });
  const month = useLoaded(`used ${agentId}`, async (signal) => {
    const {
      groups = [],
      period,
      as_of,
    } = await get<typeof usage>("/v1/orgs/self/usage", { group_by: "agent" }, signal);
    return { totals: groups.find(({ id }) => id === agentId)?.totals ?? null, period, as_of };
  });
  return (
    <>
      <h2>Now</h2>
      <Shown of={now} rows={2}>
        {(data) => {
          if (!data?.item) return <Empty title="No running sandbox of this agent." />;
          const { item, metrics, at } = data;
          const upMs = item.ready_at === null ? null : Date.parse(at) - Date.parse(item.ready_at);
          const used = item.cpu.used_seconds;
          return (
            <>
              <Facts
                facts={[
                  ["Processor since start", used === null ? "–" : spanText(used * 1000)],
                  [
                    "Utilization",
                    used === null || !upMs ? "–" : `${((used * 100_000) / upMs / item.cpu.vcpu_count).toFixed(1)} %`,
                  ],
                  [
                    "Memory",
                    <span
                      key="memory"
                      title={`${sizeText(item.memory.resident_bytes ?? 0)} on the host, with the virtual machine itself`}
                    >
                      {item.memory.memory_mib} MiB
                    </span>,
                  ],
                  ["Disk", sizeText(item.disk.used_bytes)],
                  ["Sent", sizeText(item.egress.sent_bytes)],
                  ["Received", sizeText(item.egress.received_bytes)],
                  ["Open connections", countText(item.egress.open_connections)],
                  ["Clock skew", skewText(metrics.data?.clock_skew_ms ?? null)],
                ]}
              />
              {metrics.problem ? <Trouble problem={metrics.problem} /> : null}
              <p class="muted">
                As of <Clock at={at} />.{" "}
                <button type="button" class="link" onClick={now.again}>
                  Refresh
                </button>
              </p>
            </>
          );
        }}
      </Shown>
      <h2>
        This month <a href="/usage?by=agent">all agents</a>
      </h2>
      <Shown of={month} rows={4}>
        {({ totals, period, as_of }) =>
          totals === null ? (
            <Empty title="Nothing was used this month." />
          ) : (
            <>
              <Month totals={totals} />
              <p class="muted">
                From <Clock at={period.start_at} /> to <Clock at={as_of} />, of all agents with this name in the
                organization's rooms.
              </p>
            </>
          )
        }
      </Shown>
      <Ask names={["compare-agents", "what-did-it-cost"]} given={{ room: room.room_id, agent: agentId }} />
    </>
  );
}

const skewText = (ms: number | null) => (ms === null ? "–" : `${Math.round(ms)} ms`);

const hours = (seconds: number) => `${(seconds / 3600).toFixed(2)} h`;

function Month({ totals }: { totals: UsageTotals }) {
  const rows = [
    ["Sandbox time", hours(totals.sandbox_seconds), "running; standby is not counted"],
    ["Processor time given", hours(totals.vcpu_seconds), "the same for each processor"],
    ["Memory given", `${(totals.memory_mib_seconds / 1024 / 3600).toFixed(2)} GiB h`, "the same for each GiB"],
    ["Commands", countText(totals.exec_count), "run by calls"],
    ["Messages", countText(totals.messages), "that were accepted"],
    ["Sent out", sizeText(totals.egress_bytes), "to the outside"],
  ] as const;
  return (
    <Table
      class="used"
      classes={{ Used: "num tight", Counted: "muted" }}
      rows={rows.map(([quantity, used, meteredAs]) => ({
        key: quantity,
        cells: { What: quantity, Used: used, Counted: meteredAs },
      }))}
    />
  );
}
