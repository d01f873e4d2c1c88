/** Components without state, which the daemon renders too. */
import { type ComponentChildren, Fragment } from "preact";

export type Look = "ok" | "wait" | "bad" | "quiet" | "live" | "busy";

/** A state as a shape, a word and a colour: never the colour alone. */
export function State({ look, children }: { look: Look; children: ComponentChildren }) {
  return <span class={`state ${look}`}>{children}</span>;
}

export function Head({ title, children }: { title: ComponentChildren; children?: ComponentChildren }) {
  return (
    <header class="page">
      <h1>{title}</h1>
      {children}
    </header>
  );
}

/** Numbers side by side. */
export function Facts({ facts }: { facts: readonly (readonly [name: string, value: ComponentChildren])[] }) {
  return (
    <dl class="numbers">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Properties of a record, one a line; undefined values are left out. */
export function Properties({ of }: { of: Readonly<Record<string, ComponentChildren>> }) {
  return (
    <dl class="facts">
      {Object.entries(of).map(([name, value]) =>
        value === undefined ? null : (
          <Fragment key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </Fragment>
        ),
      )}
    </dl>
  );
}

interface TabsProps {
  tabs: readonly (readonly [path: string, name: string])[];
  at: string;
  label: string;
}

export function Tabs({ tabs, at, label }: TabsProps) {
  return (
    <nav class="tabs" aria-label={label}>
      <Links to={tabs} at={at} />
    </nav>
  );
}

export function Links({ to, at }: { to: TabsProps["tabs"]; at: string | undefined }) {
  return to.map(([path, name]) => (
    <a key={path} href={path} aria-current={path === at ? "page" : undefined}>
      {name}
    </a>
  ));
}

/** An error, and the next step. */
export function Alert({
  text,
  hint,
  children,
}: {
  text: string;
  hint?: string | null | undefined;
  children?: ComponentChildren;
}) {
  return (
    <div class="trouble" role="alert">
      <p>
        {text} {hint ? <span class="muted">{hint}</span> : null}
      </p>
      {children}
    </div>
  );
}

/** Result of a form. */
export function Done({ children }: { children: ComponentChildren }) {
  return children ? (
    <p class="done" role="status">
      {children}
    </p>
  ) : null;
}

/** Empty state: the reason, and how to create content. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p>
        <b>{title}</b>
      </p>
      {children}
    </div>
  );
}

/** A time in UTC; the title has the exact time. */
export function Moment({ at, none = "never" }: { at: string | null; none?: string }) {
  if (at === null) return <span class="muted">{none}</span>;
  return (
    <time dateTime={at} title={at}>
      {`${at.slice(0, 16).replace("T", " ")} UTC`}
    </time>
  );
}
