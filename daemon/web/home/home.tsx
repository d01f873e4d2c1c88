/** The home page: the steps to a first sandbox, which are ticked automatically, and after them the organization's activity. */
import type { AuditRecord, orgAuditList } from "../../../shared/api/audit.ts";
import type { roomList } from "../../../shared/api/rooms.ts";
import { Head, Loading, Trouble } from "../components/parts.tsx";
import { get } from "../data/api.ts";
import { useLoaded } from "../data/resource.ts";
import { boot } from "../shell/boot.ts";
import { Lost, useProgram } from "../shell/lazy-page.tsx";
import { Live } from "../shell/live-state.tsx";
import { useTitle } from "../shell/title.ts";
import type { Steps } from "./first-steps.tsx";

/** Key in localStorage for the user who has finished or skipped the first steps. */
const OVER = "first-steps";

/** Whether they were visible before the last one was done: then they stay until the user leaves them. */
let isSeen = false;
/** Client kinds whose first call is awaited: other calls, which may be many, complete no step. */
let awaited: ("mcp" | "rest")[] = [];

const over = () => localStorage.setItem(OVER, boot.user.email);

/** The newest record that matches the query. */
async function first(query: Record<string, string>, signal: AbortSignal): Promise<AuditRecord | null> {
  return (await firstOf({ ...query, limit: 1 }, signal))[0] ?? null;
}

async function firstOf(query: Record<string, string | number>, signal: AbortSignal): Promise<AuditRecord[]> {
  return (await get<typeof orgAuditList>("/v1/orgs/self/audit", { ...query, order: "asc" }, signal)).items;
}

/**
 * Null once the user has finished or skipped the steps. They count users' clients: MCP, and keys created by users. The setup's demo is
 * neither.
 */
async function stepsOf(signal: AbortSignal): Promise<Steps | null> {
  if (localStorage.getItem(OVER) === boot.user.email) return null;
  const made = { event: "sandbox.created", outcome: "success" };
  const [keys, grant, connected, mcp, byMcp, rooms] = await Promise.all([
    firstOf({ event: "key.created", outcome: "success" }, signal),
    first({ event: "oauth.granted", outcome: "success" }, signal),
    first({ event: "mcp.connected" }, signal),
    firstOf({ source: "mcp", limit: 9 }, signal),
    first({ ...made, source: "mcp" }, signal),
    get<typeof roomList>("/v1/rooms", { limit: 20 }, signal),
  ]);
  const key = keys.find(({ actor }) => actor.type === "user") ?? null;
  const byKey = { actor_id: String(key?.details.key_id) };
  const called = mcp.find(({ event }) => event !== "mcp.connected") ?? (key && (await first(byKey, signal)));
  const sandbox = byMcp ?? (key && (await first({ ...made, ...byKey }, signal)));
  if (sandbox && !isSeen) {
    over();
    return null;
  }
  isSeen = true;
  awaited = called ? [] : key ? ["mcp", "rest"] : ["mcp"];
  const running = rooms.items.find(({ sandbox_count }) => sandbox_count > 0)?.room_id;
  return { key: key ?? grant ?? connected, connected: connected ?? called, called, sandbox, running };
}

/** The page shows either of these; the other is not loaded. */
const loadSteps = () => import("./first-steps.tsx");
const loadOverview = () => import("./overview.tsx");

const MOVES_ON = /^(?:key\.|oauth\.|mcp\.|sandbox\.)/;

export default function Home() {
  useTitle("Home");
  const steps = useLoaded(
    "steps",
    stepsOf,
    ({ event, source }) => MOVES_ON.test(event) || awaited.some((each) => each === source),
  );
  const isBegun = steps.data === null;
  const begin = useProgram(steps.data ? loadSteps : undefined);
  const overview = useProgram(isBegun ? loadOverview : undefined);
  return (
    <>
      <Head title={isBegun || steps.data === undefined ? "Home" : "Five steps to a running agent"}>
        <Live />
      </Head>
      {steps.problem ? <Trouble problem={steps.problem} again={steps.again} /> : null}
      {begin.isLost || overview.isLost ? (
        <Lost />
      ) : steps.data && begin.Page ? (
        <begin.Page
          steps={steps.data}
          leave={() => {
            over();
            steps.again();
          }}
        />
      ) : overview.Page ? (
        <overview.Page />
      ) : steps.problem ? null : (
        <Loading rows={5} />
      )}
    </>
  );
}
