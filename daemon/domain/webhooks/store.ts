/** The only SQL of webhooks. */
import { and, asc, count, desc, eq, gt, isNotNull, isNull, lt, notInArray } from "drizzle-orm";
import type { OrgId, WebhookId } from "../../../shared/ids.ts";
import type { Queries } from "../../db/client.ts";
import {
  type DeliveryRow,
  type ProgressRow,
  type WebhookRow,
  webhookDeliveries,
  webhookProgress,
  webhooks,
} from "./table.ts";

const { webhook_id, delivery_id, next_at } = webhookDeliveries;
const isOf = (webhookId: WebhookId) => eq(webhook_id, webhookId);

export function insertWebhook(queries: Queries, row: WebhookRow): void {
  queries.insert(webhooks).values(row).run();
}

export function getWebhook(queries: Queries, orgId: OrgId, webhookId: string): WebhookRow | undefined {
  const isIt = and(eq(webhooks.org_id, orgId), eq(webhooks.webhook_id, webhookId as WebhookId));
  return queries.select().from(webhooks).where(isIt).get();
}

/** Oldest first, after the given one. */
export function listWebhooks(queries: Queries, orgId: OrgId, after: string | null, limit: number): WebhookRow[] {
  const isAfter = after === null ? undefined : gt(webhooks.webhook_id, after as WebhookId);
  const isWanted = and(eq(webhooks.org_id, orgId), isAfter);
  return queries.select().from(webhooks).where(isWanted).orderBy(asc(webhooks.webhook_id)).limit(limit).all();
}

export function countWebhooks(queries: Queries, orgId: OrgId): number {
  return queries.select({ n: count() }).from(webhooks).where(eq(webhooks.org_id, orgId)).get()?.n ?? 0;
}

/** Webhooks that one step reads. */
const PAGE = 200;

/** Enabled webhooks of all organizations, in pages. */
export function* listEnabled(queries: Queries): Generator<WebhookRow[]> {
  const id = webhooks.webhook_id;
  let page: WebhookRow[];
  let after = "" as WebhookId;
  do {
    const isNext = and(isNull(webhooks.disabled_reason), gt(id, after));
    page = queries.select().from(webhooks).where(isNext).orderBy(asc(id)).limit(PAGE).all();
    yield page;
    after = page.at(-1)?.webhook_id ?? after;
  } while (page.length === PAGE);
}

/** Undefined: it is gone. */
export function changeWebhook(
  queries: Queries,
  webhookId: WebhookId,
  change: Partial<WebhookRow>,
): WebhookRow | undefined {
  return queries.update(webhooks).set(change).where(eq(webhooks.webhook_id, webhookId)).returning().get();
}

export function deleteWebhook(queries: Queries, webhookId: WebhookId): void {
  queries.delete(webhooks).where(eq(webhooks.webhook_id, webhookId)).run();
}

/** Deletes this host's rows of a deleted webhook. */
export function deleteOwn(queries: Queries, webhookId: WebhookId): void {
  queries.delete(webhookDeliveries).where(isOf(webhookId)).run();
  queries.delete(webhookProgress).where(eq(webhookProgress.webhook_id, webhookId)).run();
}

/** Removed webhooks of which this host still has rows. */
export function listGone(queries: Queries): WebhookId[] {
  const known = queries.select({ id: webhooks.webhook_id }).from(webhooks);
  const ids = [
    ...queries
      .select({ id: webhookProgress.webhook_id })
      .from(webhookProgress)
      .where(notInArray(webhookProgress.webhook_id, known))
      .all(),
    ...queries.selectDistinct({ id: webhook_id }).from(webhookDeliveries).where(notInArray(webhook_id, known)).all(),
  ];
  return [...new Set(ids.map(({ id }) => id))];
}

export function getProgress(queries: Queries, webhookId: WebhookId): ProgressRow | undefined {
  return queries.select().from(webhookProgress).where(eq(webhookProgress.webhook_id, webhookId)).get();
}

export function insertProgress(queries: Queries, row: ProgressRow): void {
  queries.insert(webhookProgress).values(row).run();
}

/** No effect if it was deleted. */
export function changeProgress(queries: Queries, webhookId: WebhookId, change: Partial<ProgressRow>): void {
  queries.update(webhookProgress).set(change).where(eq(webhookProgress.webhook_id, webhookId)).run();
}

export function getDelivery(queries: Queries, webhookId: WebhookId, deliveryId: string): DeliveryRow | undefined {
  return queries
    .select()
    .from(webhookDeliveries)
    .where(and(isOf(webhookId), eq(delivery_id, deliveryId)))
    .get();
}

export function putDelivery(queries: Queries, row: DeliveryRow): void {
  const { webhook_id: _, delivery_id: __, ...set } = row;
  queries
    .insert(webhookDeliveries)
    .values(row)
    .onConflictDoUpdate({ target: [webhook_id, delivery_id], set })
    .run();
}

/** Newest first, before the given one. */
export function listDeliveries(
  queries: Queries,
  webhookId: WebhookId,
  before: string | null,
  limit: number,
): DeliveryRow[] {
  const isBefore = before === null ? undefined : lt(delivery_id, before);
  return queries
    .select()
    .from(webhookDeliveries)
    .where(and(isOf(webhookId), isBefore))
    .orderBy(desc(delivery_id))
    .limit(limit)
    .all();
}

/** Waiting deliveries, the next first. */
export function nextDeliveries(queries: Queries, webhookId: WebhookId, limit: number): DeliveryRow[] {
  return queries
    .select()
    .from(webhookDeliveries)
    .where(and(isOf(webhookId), isNotNull(next_at)))
    .orderBy(asc(next_at))
    .limit(limit)
    .all();
}

export function countWaiting(queries: Queries, webhookId: WebhookId): number {
  const isWaiting = and(isOf(webhookId), isNotNull(next_at));
  return queries.select({ n: count() }).from(webhookDeliveries).where(isWaiting).get()?.n ?? 0;
}

/** Makes waiting deliveries due now, as if they had never been attempted. */
export function renewWaiting(queries: Queries, webhookId: WebhookId, now: string): void {
  queries
    .update(webhookDeliveries)
    .set({ attempts: 0, next_at: now })
    .where(and(isOf(webhookId), isNotNull(next_at)))
    .run();
}

/** Keeps the newest `most` of the finished ones. */
export function dropOver(queries: Queries, webhookId: WebhookId, most: number): void {
  const isOver = and(isOf(webhookId), isNull(next_at));
  const oldest = queries
    .select({ delivery_id })
    .from(webhookDeliveries)
    .where(isOver)
    .orderBy(desc(delivery_id))
    .limit(1)
    .offset(most)
    .get();
  if (!oldest) return;
  queries
    .delete(webhookDeliveries)
    .where(and(isOver, lt(delivery_id, `${oldest.delivery_id}~`)))
    .run();
}
