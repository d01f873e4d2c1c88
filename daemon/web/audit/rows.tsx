/** The list of audit records: a line each, with only the visible ones in the page. */

import { Component } from "preact";
import { useRef } from "preact/hooks";
import type { AuditRecord } from "../../../shared/api/audit.ts";
import { aboutText, endOf, Outcome, Who } from "../components/records.tsx";
import { Clock, countText, Foreign, spanText } from "../components/text.tsx";
import { Virtual } from "../components/virtual.tsx";
import { roomPath } from "../data/paths.ts";
import { hrefWith } from "../shell/router.ts";
import type { Records } from "./records.ts";

export function Rows({ records, opened }: { records: Records; opened: string | null }) {
  const place = useRef<HTMLElement>(null);
  const { shown, fresh } = records;
  return (
    <>
      {fresh.length > 0 ? (
        <p class="fresh">
          <button type="button" class="button" onClick={() => place.current?.scrollTo({ top: 0 })}>
            {countText(fresh.length)} new
          </button>
        </p>
      ) : null}
      <Virtual
        place={place}
        label="Records, the newest first"
        rows={shown}
        onTop={records.look}
        onNearEnd={records.more}
        head={
          <tr>
            {["When", "Who", "Room", "What", "Outcome", "Took"].map((name) => (
              <th key={name}>{name}</th>
            ))}
          </tr>
        }
        row={(record, n, top) => (
          <Row key={record.seq} record={record} n={n} top={top} isOpen={record.audit_id === opened} />
        )}
      />
    </>
  );
}

export const rowId = (auditId: string) => `row-${auditId}`;

interface RowProps {
  record: AuditRecord;
  n: number;
  top: { top: string };
  isOpen: boolean;
}

/** Records are immutable: a row is re-rendered only if it moves or is opened. */
class Row extends Component<RowProps> {
  override shouldComponentUpdate({ record, n, top, isOpen }: RowProps): boolean {
    const { props } = this;
    return record !== props.record || n !== props.n || top.top !== props.top.top || isOpen !== props.isOpen;
  }

  override render({ record, n, top, isOpen }: RowProps) {
    const { audit_id, room_id, room_uid, event, duration_ms } = record;
    return (
      <tr class={isOpen ? "is-open" : undefined} style={top} aria-rowindex={n + 2}>
        <td class="when">
          <a
            id={rowId(audit_id)}
            data-row
            class="whole"
            href={hrefWith({ open: audit_id })}
            aria-current={isOpen ? "true" : undefined}
          >
            <Clock at={endOf(record)} />
          </a>
        </td>
        <td class="who">
          <Who record={record} />
        </td>
        <td class="room">
          {room_id === null ? null : (
            <a href={`${roomPath(room_id)}?uid=${room_uid ?? ""}`}>
              <Foreign text={room_id} most={60} />
            </a>
          )}
        </td>
        <td class="what">
          <code>{event}</code> <Foreign text={aboutText(record)} />
        </td>
        <td class="outcome">
          <Outcome record={record} />
        </td>
        <td class="took num">{duration_ms === null ? "–" : spanText(duration_ms)}</td>
      </tr>
    );
  }
}
