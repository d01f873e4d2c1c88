/** A table of records. On a narrow screen a row is a list, in which each cell has the heading of its column. */
import type { ComponentChildren } from "preact";

/** Heading of a column of actions. */
export const ACTIONS = "";

interface TableRow {
  key: string | number;
  class?: string | undefined;
  "aria-current"?: "true" | undefined;
  /** By the headings of their columns, which are those of the first row. */
  cells: Readonly<Record<string, ComponentChildren>>;
}

interface TableProps {
  rows: readonly TableRow[];
  /** Classes of columns, by their headings. */
  classes?: Readonly<Record<string, string>>;
  /** Of the table. */
  class?: string;
}

export function Table({ rows, classes = {}, class: own }: TableProps) {
  return (
    <div class="scroll">
      <table class={own}>
        <thead>
          <tr>
            {Object.keys(rows[0]?.cells ?? {}).map((heading) =>
              heading === ACTIONS ? (
                <td key={heading} />
              ) : (
                <th key={heading} class={classes[heading]?.startsWith("num") ? "num" : undefined}>
                  {heading}
                </th>
              ),
            )}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ key, cells, ...row }) => (
            <tr key={key} {...row}>
              {Object.entries(cells).map(([heading, cell]) => (
                <td key={heading} data-label={heading || undefined} class={classes[heading]}>
                  {cell}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
