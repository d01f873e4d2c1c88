/** Drizzle schema of the builds that organizations requested, and of their groups. */
import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { BuildFailure, BuildState } from "../../../shared/api/template-builds.ts";
import type { BuildId, OrgId } from "../../../shared/ids.ts";

export const templateBuilds = sqliteTable("template_builds", {
  build_id: text().$type<BuildId>().primaryKey(),
  org_id: text().$type<OrgId>().notNull(),
  template_id: text().notNull(),
  state: text().$type<BuildState>().notNull(),
  created_at: text().notNull(),
  started_at: text(),
  finished_at: text(),
  digest: text(),
  failure: text({ mode: "json" }).$type<BuildFailure>(),
  /** Of its stream: its output, and finally its end. */
  last_seq: integer().notNull(),
});

export const templateBuildEvents = sqliteTable(
  "template_build_events",
  {
    build_id: text().$type<BuildId>().notNull(),
    seq: integer().notNull(),
    at: text().notNull(),
    state: text().$type<BuildState>(),
    line: text(),
  },
  (table) => [primaryKey({ columns: [table.build_id, table.seq] })],
);

/** Groups that read organizations' templates (groups.ts). */
export const templateGroups = sqliteTable("template_groups", {
  org_id: text().$type<OrgId>().primaryKey(),
  number: integer().notNull(),
});

export type BuildRow = typeof templateBuilds.$inferSelect;
export type BuildEventRow = typeof templateBuildEvents.$inferSelect;
