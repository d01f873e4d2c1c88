/** One opened audit record: all its fields, and links to related resources. */

import { useEffect, useRef } from "preact/hooks";
import type { AuditRecord, orgAuditList } from "../../../shared/api/audit.ts";
import { Json } from "../components/json.tsx";
import { Copy, Empty, Shown } from "../components/parts.tsx";
import { Outcome } from "../components/records.tsx";
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
      <dl class="facts">
        <dt>event</dt>
        <dd>{text(event, auditLink("event", event), "all of these")}</dd>
        <dt>seq</dt>
        <dd>{seq}</dd>
        <dt>at</dt>
        <dd>
          <Clock at={at} />, <Ago at={at} />
        </dd>
        <dt>outcome</dt>
        <dd>
          <Outcome record={record} />
        </dd>
        <dt>status</dt>
        <dd>{text(record.status)}</dd>
        <dt>error_code</dt>
        <dd>{text(record.error_code)}</dd>
        <dt>duration</dt>
        <dd>{duration_ms === null ? text(null) : spanText(duration_ms)}</dd>
        <dt>actor</dt>
        <dd>
          {actor.type} {actor.name ? <Foreign text={actor.name} most={100} /> : null}{" "}
          {text(actor.id, auditLink("actor_id", actor.id), "all its actions")}
        </dd>
        <dt>source</dt>
        <dd>{record.source}</dd>
        <dt>ip</dt>
        <dd>{text(record.ip)}</dd>
        <dt>request_id</dt>
        <dd>
          {request_id === null ? text(null) : text(request_id, auditLink("request_id", request_id), "its request")}
        </dd>
        {traceId === null ? null : (
          <>
            <dt>trace_id</dt>
            <dd>{text(traceId, auditLink("trace_id", traceId), "its trace")}</dd>
          </>
        )}
        <dt>room_id</dt>
        <dd>
          {room_id === null ? text(null) : text(room_id, `${roomPath(room_id)}?uid=${room_uid ?? ""}`, "its room")}
        </dd>
        <dt>room_uid</dt>
        <dd>{text(room_uid)}</dd>
        <dt>agent_id</dt>
        <dd>{agent_id === null ? text(null) : text(agent_id, auditLink("agent", agent_id), "all of its records")}</dd>
        <dt>sandbox_id</dt>
        <dd>{text(record.sandbox_id)}</dd>
        <dt>org_id</dt>
        <dd>{text(record.org_id)}</dd>
        <dt>audit_id</dt>
        <dd>{text(record.audit_id, auditLink("audit_id", record.audit_id), "its own page")}</dd>
        <dt>details</dt>
        <dd>
          {Object.keys(details).length > 0 ? (
            <Json name="details" value={details} isOpen />
          ) : (
            <span class="muted">none</span>
          )}
        </dd>
        <dt>hash</dt>
        <dd>{text(record.hash)}</dd>
        <dt>prev_hash</dt>
        <dd>{text(record.prev_hash)}</dd>
      </dl>
      <Copy text={JSON.stringify(record, null, 2)} label="Copy as JSON" />
    </>
  );
}
