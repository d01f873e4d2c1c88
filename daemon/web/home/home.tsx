/** Owns the home page: the way to a first sandbox, whose steps tick themselves, and after it what goes on in the organization. */
import type { AuditRecord, orgAuditList } from "../../../shared/api/audit.ts";
import type { roomList } from "../../../shared/api/rooms.ts";
import { get } from "../data/api.ts";
import { useLoaded } from "../data/resource.ts";
import { Head, Loading, Trouble } from "../parts/parts.tsx";
import { Live } from "../shell/live-state.tsx";
import { Lost, useProgram } from "../shell/program.tsx";
import { useTitle } from "../shell/title.ts";
import type { Steps } from "./first-steps.tsx";

/** That clients have shown themselves is on record once for each: so many are looked over. */
const MOST_CLIENTS = 100;

/** The first record of some kind that there is. */
async function first(query: Record<string, string>, signal: AbortSignal): Promise<AuditRecord | null> {
  return (await firstOf(query, 1, signal))[0] ?? null;
}

async function firstOf(query: Record<string, string>, limit: number, signal: AbortSignal): Promise<AuditRecord[]> {
  return (await get<typeof orgAuditList>("/v1/orgs/self/audit", { ...query, order: "asc", limit }, signal)).items;
}

/** Whether there was more to see than how to begin: then there is from now on. */
let hasBegun = false;

/** Null once a sandbox has run, or there are rooms: then there is more to see than how to begin. */
async function stepsOf(signal: AbortSignal): Promise<Steps | null> {
  if (hasBegun) return null;
  const [rooms, sandbox] = await Promise.all([
    get<typeof roomList>("/v1/rooms", { limit: 1 }, signal),
    first({ event: "sandbox.created", outcome: "success" }, signal),
  ]);
  hasBegun = sandbox !== null || rooms.items.some(({ sandbox_count }) => sandbox_count > 0);
  if (hasBegun) return null;
  const [key, grant, connected, mcp, rest] = await Promise.all([
    first({ event: "key.created", outcome: "success" }, signal),
    first({ event: "oauth.granted", outcome: "success" }, signal),
    first({ event: "mcp.connected" }, signal),
    firstOf({ source: "mcp" }, MOST_CLIENTS, signal),
    first({ source: "rest", outcome: "success" }, signal),
  ]);
  const called = mcp.find(({ event }) => event !== "mcp.connected") ?? rest;
  return { key: key ?? grant, connected: connected ?? called, called };
}

/** One of them is seen: the other is not loaded. */
const loadSteps = () => import("./first-steps.tsx");
const loadOverview = () => import("./overview.tsx");

const MOVES_ON = /^(?:key\.|oauth\.|mcp\.|sandbox\.)/;

export default function Home() {
  useTitle("Home");
  const steps = useLoaded(
    "steps",
    stepsOf,
    ({ event, source }) => MOVES_ON.test(event) || source === "mcp" || source === "rest",
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
        <begin.Page steps={steps.data} />
      ) : overview.Page ? (
        <overview.Page />
      ) : steps.problem ? null : (
        <Loading rows={5} />
      )}
    </>
  );
}
