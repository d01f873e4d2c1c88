/** One opened audit record: all its fields, and links to related resources. */

import { useEffect, useRef } from "preact/hooks";
import type { AuditRecord, orgAuditList } from "../../../shared/api/audit.ts";
import { Json } from "../components/json.tsx";
import { Copy, Empty, Shown } from "../components/parts.tsx";
import { Outcome } from "../components/records.tsx";
import { Properties } from "../components/static.tsx";
import { Ago, Clock, Foreign, spanText } from "../components/text.tsx";
import { get, part } from "../data/api.ts";
import { roomPath } from "../data/paths.ts";
import { useLoaded } from "../data/resource.ts";
import { setQuery } from "../shell/router.ts";
import { rowId } from "./rows.tsx";

/** While it covers the page (audit.css), the content beneath is inert. */
const COVERS = matchMedia("(max-width: 1100px)");

/** `known` is the record, if the list has it. */
export function OpenRecord({ id, known }: { id: string; known: AuditRecord | undefined }) {
  const place = useRef<HTMLDialogElement>(null);
  const found = useLoaded(`record ${id} ${known === undefined}`, async (signal) => {
    if (known) return known;
    const { items } = await get<typeof orgAuditList>("/v1/orgs/self/audit", { audit_id: id, limit: 1 }, signal);
    return items[0] ?? null;
  });
  useEffect(() => {
    const show = () => {
      const { current: dialog } = place;
      dialog?.close();
      if (COVERS.matches) dialog?.showModal();
      else dialog?.show();
      dialog?.focus();
    };
    show();
    COVERS.addEventListener("change", show);
    return () => COVERS.removeEventListener("change", show);
  }, [id]);
  const close = () => {
    place.current?.close();
    setQuery({ open: null });
    document.getElementById(rowId(id))?.focus();
  };
  return (
    <dialog
      ref={place}
      class="record"
      aria-label="Open record"
      tabIndex={-1}
      onKeyDown={(event) => {
        if (event.key === "Escape") close();
      }}
    >
      <header>
        <h2>{known ? `Record ${known.seq}` : "Record"}</h2>
        <button type="button" class="button" onClick={close}>
          Close
        </button>
      </header>
      {known ? (
        <All record={known} />
      ) : (
        <Shown of={found}>
          {(record) =>
            record ? (
              <All record={record} />
            ) : (
              <Empty title="Record not found.">
                <p>It is not this organization's, or its retention time (a setting of the service) is over.</p>
              </Empty>
            )
          }
        </Shown>
      )}
    </dialog>
  );
}

const auditLink = (name: string, value: string) => `/audit?${name}=${part(value)}`;

function All({ record }: { record: AuditRecord }) {
  const { seq, event, at, actor, room_id, room_uid, agent_id, request_id, duration_ms, details } = record;
  const traceId = typeof details.trace_id === "string" ? details.trace_id : null;
  const text = (value: string | number | null, href?: string, way?: string) =>
    value === null ? (
      <span class="muted">–</span>
    ) : (
      <>
        <Foreign text={String(value)} mono most={500} />
        {href ? (
          <>
            {" "}
            <a href={href}>{way}</a>
          </>
        ) : null}
      </>
    );
  return (
    <>
      <Properties
        of={{
          event: text(event, auditLink("event", event), "all of these"),
          seq,
          at: (
            <>
              <Clock at={at} />, <Ago at={at} />
            </>
          ),
          outcome: <Outcome record={record} />,
          status: text(record.status),
          error_code: text(record.error_code),
          duration: duration_ms === null ? text(null) : spanText(duration_ms),
          actor: (
            <>
              {actor.type} {actor.name ? <Foreign text={actor.name} most={100} /> : null}{" "}
              {text(actor.id, auditLink("actor_id", actor.id), "all its actions")}
            </>
          ),
          source: record.source,
          ip: text(record.ip),
          request_id: text(request_id, auditLink("request_id", request_id ?? ""), "its request"),
          trace_id: traceId === null ? undefined : text(traceId, auditLink("trace_id", traceId), "its trace"),
          room_id: text(room_id, `${roomPath(room_id ?? "")}?uid=${room_uid ?? ""}`, "its room"),
          room_uid: text(room_uid),
          agent_id: text(agent_id, auditLink("agent", agent_id ?? ""), "all of its records"),
          sandbox_id: text(record.sandbox_id),
          org_id: text(record.org_id),
          audit_id: text(record.audit_id, auditLink("audit_id", record.audit_id), "its own page"),
          details:
            Object.keys(details).length > 0 ? (
              <Json name="details" value={details} isOpen />
            ) : (
              <span class="muted">none</span>
            ),
          hash: text(record.hash),
          prev_hash: text(record.prev_hash),
        }}
      />
      <Copy text={JSON.stringify(record, null, 2)} label="Copy as JSON" />
    </>
  );
}
