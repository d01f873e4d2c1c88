/** Owns what the home page shows of an organization that works: what runs, what is left, and what went wrong last. */
import type { AuditRecord, orgAuditList } from "../../../shared/api/audit.ts";
import type { roomList } from "../../../shared/api/rooms.ts";
import type { topGet } from "../../../shared/api/top.ts";
import type { usage } from "../../../shared/api/usage.ts";
import { get } from "../data/api.ts";
import { useLoaded } from "../data/resource.ts";
import { Ask } from "../parts/ask.tsx";
import { Empty, Facts, Shown } from "../parts/parts.tsx";
import { RecordTable } from "../parts/records.tsx";
import { countText, sizeText } from "../parts/text.tsx";
import { RoomTable } from "../rooms/table.tsx";

/** As many as one looks at on a home page. */
const FEW = 8;

interface Now {
  top: Awaited<ReturnType<typeof loadTop>>;
  used: Awaited<ReturnType<typeof loadUsage>>;
}

const loadTop = (signal: AbortSignal) => get<typeof topGet>("/v1/top", {}, signal);
const loadUsage = (signal: AbortSignal) => get<typeof usage>("/v1/orgs/self/usage", {}, signal);

const changesRooms = ({ event }: AuditRecord) => /^(?:room|sandbox)\./.test(event);

export default function Overview() {
  const now = useLoaded<Now>(
    "now",
    async (signal) => {
      const [top, used] = await Promise.all([loadTop(signal), loadUsage(signal)]);
      return { top, used };
    },
    changesRooms,
  );
  const rooms = useLoaded(
    "rooms",
    (signal) => get<typeof roomList>("/v1/rooms", { state: "active", limit: FEW }, signal),
    changesRooms,
  );
  const failed = useLoaded(
    "failed",
    async (signal) => {
      const [errors, denied] = await Promise.all(
        ["error", "denied"].map((outcome) =>
          get<typeof orgAuditList>("/v1/orgs/self/audit", { outcome, limit: FEW }, signal),
        ),
      );
      const all = [...(errors?.items ?? []), ...(denied?.items ?? [])];
      return all.sort((one, other) => other.seq - one.seq).slice(0, FEW);
    },
    ({ outcome }) => outcome !== "success",
  );
  return (
    <>
      <Shown of={now} rows={1}>
        {({ top, used }) => {
          const running = top.items.filter(({ state }) => state === "running").length;
          const { remaining } = used.credits;
          return (
            <>
              <Facts
                facts={[
                  ["Rooms", countText(used.rooms.active)],
                  ["Sandboxes", `${running} of ${countText(used.sandboxes.hard_cap)}`],
                  ["Memory", `${sizeText(used.memory_mib.allocated * 1024 ** 2)}`],
                  ["Drives", sizeText(used.drive.used_bytes)],
                  ["Credits left", remaining === null ? "no limit" : countText(Math.floor(remaining))],
                ]}
              />
              {used.warnings.map((text) => (
                <p key={text} class="warning">
                  {text}
                </p>
              ))}
            </>
          );
        }}
      </Shown>
      <h2>
        Active rooms <a href="/rooms">all</a>
      </h2>
      <Shown of={rooms}>
        {({ items }) =>
          items.length > 0 ? (
            <RoomTable rooms={items} />
          ) : (
            <Empty title="No room is active.">
              <p>A room comes with its first prompt: copy one below, or one of those at Prompts.</p>
            </Empty>
          )
        }
      </Shown>
      <h2>
        What failed or was refused last <a href="/audit?outcome=error">all</a>
      </h2>
      <Shown of={failed}>
        {(records) =>
          records.length > 0 ? (
            <RecordTable records={records} showsRoom />
          ) : (
            <Empty title="Nothing failed, and nothing was refused." />
          )
        }
      </Shown>
      <Ask names={["what-is-going-on", "what-is-left"]} />
    </>
  );
}
