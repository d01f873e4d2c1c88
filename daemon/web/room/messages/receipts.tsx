/** A message's delivery state per recipient: loaded when it is visible, and reloaded after events that may change it. */
import { type ReadonlySignal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { messageGet } from "../../../../shared/api/fabric.ts";
import { type Look, Shown, State } from "../../components/parts.tsx";
import { Foreign, Since } from "../../components/text.tsx";
import { get, part } from "../../data/api.ts";
import { useLoaded } from "../../data/resource.ts";
import { isTouched } from "./touched.ts";

const LOOKS: Record<string, Look> = {
  queued: "wait",
  delivered: "busy",
  read: "ok",
  acked: "ok",
  undeliverable: "bad",
  expired: "bad",
};
/** While agents read continuously, each read may change each message. */
const PACE = { firstMs: 1000, steadyMs: 10_000 };

interface ReceiptsProps {
  messageId: string;
  roomId: string;
}

export function Receipts(props: ReceiptsProps) {
  const box = useRef<HTMLDivElement>(null);
  const isInView = useSignal(false);
  const wasInView = useSignal(false);
  useEffect(() => {
    if (!box.current) return;
    const view = new IntersectionObserver((entries) => {
      isInView.value = entries.at(-1)?.isIntersecting ?? false;
      wasInView.value ||= isInView.value;
    });
    view.observe(box.current);
    return () => view.disconnect();
  }, []);
  return (
    <div ref={box}>{wasInView.value ? <Told {...props} isInView={isInView} /> : <p class="receipts">&nbsp;</p>}</div>
  );
}

function Told({ messageId, roomId, isInView }: ReceiptsProps & { isInView: ReadonlySignal<boolean> }) {
  const isOld = useRef(false);
  const found = useLoaded(
    `message ${messageId}`,
    (signal) => get<typeof messageGet>(`/v1/rooms/${part(roomId)}/messages/${part(messageId)}`, {}, signal),
    (record) => {
      if (!isTouched(messageId, record)) return false;
      isOld.current ||= !isInView.peek();
      return isInView.peek();
    },
    PACE,
  );
  useEffect(() => {
    if (!isInView.value || !isOld.current) return;
    isOld.current = false;
    found.again();
  }, [isInView.value]);
  return (
    <Shown of={found} rows={1}>
      {({ deliveries, recipient_count, created_at }) => (
        <p class="receipts">
          {deliveries.map(({ agent_id, state }) => (
            <State key={agent_id} look={LOOKS[state] ?? "quiet"}>
              <Foreign text={`${agent_id}: ${state}`} most={80} />
              {state === "queued" ? (
                <span>
                  in the inbox for <Since at={created_at} />
                </span>
              ) : null}
            </State>
          ))}
          {recipient_count > deliveries.length ? (
            <span class="muted">and {recipient_count - deliveries.length} more</span>
          ) : null}
          {recipient_count === 0 ? <span class="muted">It had no recipients.</span> : null}
        </p>
      )}
    </Shown>
  );
}
