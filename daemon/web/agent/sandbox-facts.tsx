/** Description of a sandbox: its state and the reason, its source, its permissions, and its end. */

import type { SandboxRecord } from "../../../shared/api/sandboxes.ts";
import { State } from "../components/parts.tsx";
import { SandboxState } from "../components/sandbox-state.tsx";
import { Properties } from "../components/static.tsx";
import { Ago, Clock, Foreign, spanText, visible } from "../components/text.tsx";
import { part } from "../data/api.ts";
import { roomPath } from "../data/paths.ts";
import { Labels } from "../rooms/table.tsx";
import { causeWords, egressWords, stagesOf, startWords } from "./words.ts";

/** Number of start stages shown; the remaining ones take negligible time. */
const MAX_STAGES = 6;

export function SandboxFacts({ sandbox }: { sandbox: SandboxRecord }) {
  const { state, status, exit, template_id, template_digest, start_mode, create_wall_ms, boot } = sandbox;
  return (
    <Properties
      of={{
        State: (
          <>
            <SandboxState state={state} />
            {visible(status.message)}{" "}
            <span class="muted">
              since <Clock at={status.last_transition_at} /> · <code>{status.reason}</code>
            </span>
          </>
        ),
        "Ended because": exit ? (
          <>
            {causeWords(exit.cause)}{" "}
            <span class="muted">
              at <Clock at={exit.at} />
            </span>
          </>
        ) : undefined,
        Template: (
          <>
            <Foreign text={template_id} />{" "}
            {template_digest ? <code class="muted">{template_digest.slice(0, 19)}…</code> : null}
          </>
        ),
        Snapshot:
          sandbox.snapshot_id === null ? undefined : (
            <>
              <a href={`/go/${part(sandbox.snapshot_id)}`}>
                <Foreign text={sandbox.snapshot_id} mono />
              </a>{" "}
              <span class="muted">created from, restored to, or last taken</span>
            </>
          ),
        Size: `${sandbox.memory_mib} MiB, ${sandbox.vcpu_count} ${sandbox.vcpu_count === 1 ? "processor" : "processors"}`,
        Made: (
          <>
            <Ago at={sandbox.created_at} /> by <By {...sandbox.created_by} />, from {startWords(start_mode)}
          </>
        ),
        "Took to make": <Made ms={create_wall_ms} boot={boot} />,
        Connects: <Egress egress={sandbox.egress} />,
        Drive:
          sandbox.drive.state === "ok" ? (
            <>
              at <code>{sandbox.drive_mount}</code>
            </>
          ) : (
            <>
              <State look="bad">degraded</State>
              {visible(sandbox.drive.message ?? "")}
            </>
          ),
        Messages: sandbox.fabric_attached ? "connected" : "not connected to its room (attach_fabric was false)",
        Ports: <Ports sandbox={sandbox} />,
        Environment: sandbox.env_keys.length === 0 ? "–" : <Names names={sandbox.env_keys} />,
        Labels: Object.keys(sandbox.labels).length === 0 ? "–" : <Labels labels={sandbox.labels} />,
        Expires: sandbox.expires_at === null ? "no" : <Clock at={sandbox.expires_at} />,
      }}
    />
  );
}

function Made({ ms, boot }: { ms: number | null; boot: Record<string, number> }) {
  if (ms === null) return <>not yet</>;
  const stages = stagesOf(boot).slice(0, MAX_STAGES);
  return (
    <>
      {spanText(ms)}
      {stages.length > 0 ? (
        <span class="muted"> · {stages.map(({ name, ms: each }) => `${name} ${spanText(each)}`).join(" · ")}</span>
      ) : null}
    </>
  );
}

function Egress({ egress }: Pick<SandboxRecord, "egress">) {
  return (
    <>
      {egressWords(egress)} {egress.allowlist.length > 0 ? <Names names={egress.allowlist} /> : null}
    </>
  );
}

function Names({ names }: { names: readonly string[] }) {
  return (
    <>
      {names.map((name) => (
        <span key={name} class="label">
          <Foreign text={name} most={100} mono />
        </span>
      ))}
    </>
  );
}

function By({ type, id }: SandboxRecord["created_by"]) {
  return (
    <>
      {type}{" "}
      <a href={`/audit?actor_id=${part(id)}`}>
        <Foreign text={id} mono />
      </a>
    </>
  );
}

function Ports({ sandbox: { ports, room_id } }: { sandbox: SandboxRecord }) {
  if (ports.length === 0) return <>none exposed</>;
  return (
    <>
      {ports.map(({ port, visibility }) => (
        <span key={port} class="label">
          {port} {visibility}
        </span>
      ))}{" "}
      <a href={roomPath(room_id, "ports")}>all of the room</a>
    </>
  );
}
