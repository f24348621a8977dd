package main

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRowsOfTheMigratedDatabase(t *testing.T) {
	s := postgres(t)
	d := s.database("console", "console")
	store, err := Open(t.Context(), d)
	require.NoError(t, err)
	t.Cleanup(store.Close)
	_, err = store.Check(t.Context())
	require.ErrorContains(t, err, "schema_version", "not ready before its schema is there")

	var wg sync.WaitGroup // two at once take turns
	var applied [2]int
	for n := range applied {
		wg.Go(func() {
			var err error
			if applied[n], err = Migrate(t.Context(), d); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.ElementsMatch(t, []int{0, schemaVersion()}, applied[:])
	require.GreaterOrEqual(t, schemaVersion(), 2)
	maintenance, err := store.Check(t.Context())
	require.NoError(t, err)
	require.Empty(t, maintenance)

	first := time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
	for n := range MaxSignIns + 2 {
		require.NoError(t, store.Record(t.Context(), SignIn{Subject: "s", Name: fmt.Sprint("user ", n), Email: "u@slipway.test", At: first.Add(time.Duration(n) * time.Second)}))
	}
	all, err := store.Latest(t.Context())
	require.NoError(t, err)
	require.Len(t, all, MaxSignIns)
	require.Equal(t, SignIn{Subject: "s", Name: "user 21", Email: "u@slipway.test", At: first.Add(21 * time.Second)}, all[0], "the latest first")

	s.sql(t, "console", "INSERT INTO maintenance (reason) VALUES ('moving house')")
	maintenance, err = store.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, "moving house", maintenance)
	s.sql(t, "console", "DELETE FROM maintenance")

	s.job(t) // once more
	_, err = store.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, fmt.Sprint(MaxSignIns+2), s.sql(t, "console", "SELECT count(*) FROM sign_ins"), "the Job changes no row")

	s.sql(t, "console", "INSERT INTO schema_version (version) VALUES (99)")
	_, err = Migrate(t.Context(), d)
	require.ErrorIs(t, err, errNewer)
	_, err = store.Check(t.Context())
	require.ErrorContains(t, err, "version 99")
}

// TestRolesAreApart: neither service reads the other's database.
func TestRolesAreApart(t *testing.T) {
	s := postgres(t)
	for role, other := range map[string]string{"console": "dex", "dex": "console"} {
		_, err := Migrate(t.Context(), s.database(role, other))
		require.ErrorContains(t, err, "permission denied")
		require.NotContains(t, err.Error(), string(passwords()[role]))
		wrong := s.database(role, role)
		wrong.Password = "wrong"
		_, err = Migrate(t.Context(), wrong)
		require.ErrorContains(t, err, "password authentication failed")
	}
}

func TestDatabaseThatIsNotThere(t *testing.T) {
	store, err := Open(t.Context(), Database{Host: "127.0.0.1", Port: "1", Name: "d", User: "u", Password: "s3cret"})
	require.NoError(t, err, "opening does not connect")
	t.Cleanup(store.Close)
	_, err = store.Check(t.Context())
	require.ErrorContains(t, err, "ask the database")
	require.NotContains(t, err.Error(), "s3cret")
	_, err = store.Latest(t.Context())
	require.ErrorContains(t, err, "read the sign-ins")
	require.ErrorContains(t, store.Record(t.Context(), SignIn{}), "record a sign-in")

	_, err = Open(t.Context(), Database{Host: "h", Port: "70000"})
	require.ErrorContains(t, err, "DATABASE_PORT")
}
