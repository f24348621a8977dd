package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
)

// Config is what the environment tells the program.
type Config struct {
	Listen   string   // LISTEN, host:port; default ":8080"
	Title    string   // TITLE, heading of the page; default "Guestbook"
	Database Database // DATABASE_…
}

// Database is how the database is reached.
type Database struct {
	Host     string // DATABASE_HOST
	Port     string // DATABASE_PORT; default "5432"
	Name     string // DATABASE_NAME
	User     string // DATABASE_USER
	Password Secret // DATABASE_PASSWORD_FILE names a file that holds it, or DATABASE_PASSWORD holds it
}

// String names the database without its password.
func (d Database) String() string {
	return d.User + "@" + net.JoinHostPort(d.Host, d.Port) + "/" + d.Name
}

// Secret is a value that no log shows.
type Secret string

// String hides the value.
func (Secret) String() string { return "[secret]" }

// GoString hides the value from %#v.
func (Secret) GoString() string { return "[secret]" }

// ConfigFrom reads the environment through getenv and the password's file
// through readFile. It reports everything that is wrong at once.
func ConfigFrom(getenv func(string) string, readFile func(string) ([]byte, error)) (Config, error) {
	var problems []error
	value := func(name, fallback string) string {
		if v := strings.TrimSpace(getenv(name)); v != "" {
			return v
		}
		if fallback == "" {
			problems = append(problems, fmt.Errorf("%s is not set", name))
		}
		return fallback
	}
	cfg := Config{
		Listen: value("LISTEN", ":8080"),
		Title:  value("TITLE", "Guestbook"),
		Database: Database{
			Host: value("DATABASE_HOST", ""),
			Port: value("DATABASE_PORT", "5432"),
			Name: value("DATABASE_NAME", ""),
			User: value("DATABASE_USER", ""),
		},
	}
	password, err := passwordFrom(getenv, readFile)
	if err != nil {
		problems = append(problems, err)
	}
	cfg.Database.Password = password
	return cfg, errors.Join(problems...)
}

func passwordFrom(getenv func(string) string, readFile func(string) ([]byte, error)) (Secret, error) {
	file, plain := getenv("DATABASE_PASSWORD_FILE"), getenv("DATABASE_PASSWORD")
	switch {
	case file != "" && plain != "":
		return "", errors.New("DATABASE_PASSWORD_FILE and DATABASE_PASSWORD are both set")
	case file != "":
		content, err := readFile(file)
		if errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("DATABASE_PASSWORD_FILE: %s does not exist", file)
		}
		if err != nil {
			return "", fmt.Errorf("DATABASE_PASSWORD_FILE: %w", err)
		}
		password := Secret(strings.TrimRight(string(content), "\r\n"))
		if password == "" {
			return "", fmt.Errorf("DATABASE_PASSWORD_FILE: %s is empty", file)
		}
		return password, nil
	case plain != "":
		return Secret(plain), nil
	default:
		return "", errors.New("neither DATABASE_PASSWORD_FILE nor DATABASE_PASSWORD is set")
	}
}
